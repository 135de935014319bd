"""Distribution functions of the cosine: ends, shapes, derivatives, and variances.

test_references.py compares their values with mpmath.
"""

import pytest
import torch

from sterad.sphere import (
    AngularGaussian,
    PowerSpherical,
    RotationalLaw,
    SphericalCauchy,
    VonMisesFisher,
    Watson,
)

LAWS: dict[str, type[RotationalLaw]] = {
    law.__name__: law
    for law in (VonMisesFisher, PowerSpherical, SphericalCauchy, Watson, AngularGaussian)
}


def test_ends_and_shapes() -> None:
    kappa = torch.tensor([[0.5], [20.0]])
    law = VonMisesFisher(torch.eye(3)[:2], kappa)
    values = law.cdf([-1.0, 1.0])
    assert values.tolist() == [[0.0, 1.0]] * 2
    assert values.dtype == torch.float32
    assert law.sf(torch.zeros(7, 2, 2)).shape == (7, 2, 2)
    assert law.sf([-1.0, 1.0]).tolist() == [[1.0, 0.0]] * 2
    with pytest.raises(ValueError, match="probabilities"):
        law.icdf(1.5)


@pytest.mark.parametrize("name", ["VonMisesFisher", "PowerSpherical", "Watson"])
def test_derivatives(name: str) -> None:
    kappa = torch.tensor([0.7, 5.0], dtype=torch.float64, requires_grad=True)
    pole = torch.eye(4, dtype=torch.float64)[0]
    cosine = torch.tensor([-0.2, 0.6], dtype=torch.float64, requires_grad=True)
    probability = torch.tensor([0.3, 0.8], dtype=torch.float64, requires_grad=True)
    law = LAWS[name]
    assert torch.autograd.gradcheck(lambda k, t: law(pole, k).cdf(t), (kappa, cosine))
    assert torch.autograd.gradcheck(lambda k, q: law(pole, k).icdf(q), (kappa, probability))


@pytest.mark.parametrize("name", list(LAWS))
@pytest.mark.parametrize("dimension", [2, 3, 64])
def test_variance_is_that_of_the_samples(name: str, dimension: int) -> None:
    generator = torch.Generator().manual_seed(0)
    pole = torch.nn.functional.normalize(
        torch.randn(dimension, generator=generator, dtype=torch.float64), dim=0
    )
    law = LAWS[name](pole, 4.0)
    points = law.sample(torch.Size([20_000]), generator=generator)
    assert torch.allclose(points.var(0), law.variance, rtol=0.06)
    assert torch.allclose(law.covariance_matrix.diagonal(), law.variance)
    assert torch.allclose(points.mT.cov(), law.covariance_matrix, atol=0.012)
