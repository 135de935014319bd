"""Distribution functions of the cosine and entropies, against mpmath at 50 digits."""

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
from tests.sphere import oracle

LAWS: dict[str, type[RotationalLaw]] = {
    law.__name__: law
    for law in (VonMisesFisher, PowerSpherical, SphericalCauchy, Watson, AngularGaussian)
}
QUICK = [
    ("VonMisesFisher", 128, 200.0),
    ("PowerSpherical", 5, 0.5),
    ("Watson", 16, -30.0),
]
# Each law has every dimension, and small and large concentrations by turns.
FULL = [
    (name, dimension, (0.3, 5e3)[(i + j) % 2] if name != "Watson" else (0.3, 5e3, -50.0)[j % 3])
    for i, name in enumerate(LAWS)
    if name != "AngularGaussian"
    for j, dimension in enumerate(oracle.DIMENSIONS)
]
# Its log kernel takes milliseconds in mpmath.
GAUSSIAN = [("AngularGaussian", dimension, 1.5) for dimension in (2, 3, 5, 16, 128)]


def make(name: str, dimension: int, kappa: float) -> RotationalLaw:
    return LAWS[name](torch.eye(dimension, dtype=torch.float64)[0], kappa)


def check_cdf(name: str, dimension: int, kappa: float, places: list[float]) -> None:
    law = make(name, dimension, kappa)
    # On the circle a cosine close to -1 has few digits left: 1 + t is of the order of F².
    lowest = 1e-7 if dimension > 3 else 1e-2
    probability = torch.tensor([lowest, *places], dtype=torch.float64)
    cosines = law.icdf(probability)
    below, above = law.cdf(cosines), law.sf(cosines)
    for cosine, low, high in zip(cosines.tolist(), below, above, strict=True):
        expected_low, expected_high = oracle.cdf(name, kappa, dimension, cosine)
        assert low.item() == pytest.approx(expected_low, rel=1e-8)
        assert high.item() == pytest.approx(expected_high, rel=1e-8)
    assert torch.allclose(below, probability, rtol=1e-8, atol=0)


@pytest.mark.parametrize(("name", "dimension", "kappa"), QUICK)
def test_both_tails(name: str, dimension: int, kappa: float) -> None:
    check_cdf(name, dimension, kappa, [0.3, 0.999])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dimension", "kappa"), FULL + GAUSSIAN)
def test_both_tails_in_all_dimensions(name: str, dimension: int, kappa: float) -> None:
    check_cdf(name, dimension, kappa, [0.999])


@pytest.mark.parametrize(("name", "dimension", "kappa"), QUICK)
def test_entropy(name: str, dimension: int, kappa: float) -> None:
    found = make(name, dimension, kappa).entropy().item()
    assert found == pytest.approx(oracle.entropy(name, kappa, dimension), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dimension", "kappa"), FULL + GAUSSIAN)
def test_entropy_in_all_dimensions(name: str, dimension: int, kappa: float) -> None:
    found = make(name, dimension, kappa).entropy().item()
    assert found == pytest.approx(oracle.entropy(name, kappa, dimension), rel=1e-8, abs=1e-8)


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
