"""Entropies and divergences of laws with a covariance: the circle, samples, and derivatives."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence
from torch.nn.functional import normalize

from sterad.sphere import (
    AngularCentralGaussian,
    AngularGaussian,
    EllipticallySymmetricAngularGaussian,
    GeneralAngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphereDistribution,
    SphericalCauchy,
    Uniform,
    VonMisesFisher,
    Watson,
)
from sterad.sphere.surface_divergence import surface_divergence


def covariance(d: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return noise @ noise.mT / d + 0.3 * torch.eye(d, dtype=torch.float64)


def laws(d: int) -> dict[str, SphereDistribution]:
    """Return one law of each kind, with different axes."""
    mean = torch.linspace(-0.5, 2.0, d, dtype=torch.float64) * (3 / d) ** 0.5
    pole, other = torch.eye(d, dtype=torch.float64)[0], normalize(mean.flip(0), dim=0)
    esag = EllipticallySymmetricAngularGaussian
    return {
        "uniform": Uniform(d, dtype=torch.float64),
        "vmf": VonMisesFisher(pole, 3.0),
        "power": PowerSpherical(other, 2.5),
        "cauchy": SphericalCauchy(pole, 4.0),
        "agd": AngularGaussian(other, 1.5),
        "student": ProjectedStudentT(pole, 1.5, 2.5),
        "watson": Watson(other, -2.0),
        "central": AngularCentralGaussian(covariance(d, 1)),
        "central-2": AngularCentralGaussian(covariance(d, 2)),
        "general": GeneralAngularGaussian(mean, covariance_matrix=covariance(d, 3)),
        "general-2": GeneralAngularGaussian(mean.flip(0), covariance_matrix=covariance(d, 4)),
        "esag": esag.from_tangent(mean, covariance(d, 5)[1:, 1:]),
    }


NAMES = list(laws(2))
WITH_COVARIANCE = [name for name in NAMES if name.startswith(("central", "general", "esag"))]
PAIRS = [
    (first, second)
    for first in NAMES
    for second in NAMES
    if first != second and (first in WITH_COVARIANCE or second in WITH_COVARIANCE)
]


def circle(count: int = 1 << 12) -> Tensor:
    """Return equidistant points, for which the trapezoidal rule is exact for smooth functions."""
    angle = torch.arange(count, dtype=torch.float64) * (2 * math.pi / count)
    return torch.stack([angle.cos(), angle.sin()], 1)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_pair_on_the_circle(first: str, second: str) -> None:
    p, q, points = laws(2)[first], laws(2)[second], circle()
    gap = p.log_prob(points) - q.log_prob(points)
    expected = (p.log_prob(points).exp() * gap).mean() * 2 * math.pi
    # The grid of the reference does not resolve the logarithm of PowerSpherical at its antipode.
    tolerance = 1e-3 if second == "power" else 1e-8
    assert kl_divergence(p, q).item() == pytest.approx(expected.item(), rel=tolerance)


@pytest.mark.parametrize("name", WITH_COVARIANCE)
def test_entropy_on_the_circle(name: str) -> None:
    law, points = laws(2)[name], circle()
    value = law.log_prob(points)
    expected = -(value.exp() * value).mean() * 2 * math.pi
    assert law.entropy().item() == pytest.approx(expected.item(), rel=1e-10)


@pytest.mark.parametrize("name", WITH_COVARIANCE)
@pytest.mark.parametrize("second", ["uniform", "vmf", "watson", "central-2"])
def test_in_many_dimensions_against_samples(name: str, second: str) -> None:
    p, q = laws(16)[name], laws(16)[second]
    points = p.sample(torch.Size([4000]), generator=torch.Generator().manual_seed(0))
    log_p = p.log_prob(points)
    for found, values in ((p.entropy(), -log_p), (kl_divergence(p, q), log_p - q.log_prob(points))):
        error = float(values.std()) / math.sqrt(len(points))
        assert abs(float(values.mean() - found)) < 4 * error + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"), [("general", "central"), ("central", "vmf"), ("agd", "central")]
)
def test_one_variable_and_the_surface_agree(first: str, second: str) -> None:
    p, q = laws(3)[first], laws(3)[second]
    assert kl_divergence(p, q).item() == pytest.approx(surface_divergence(p, q).item(), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [("general", "general-2"), ("esag", "power"), ("student", "general"), ("central", "cauchy")],
)
def test_on_the_sphere_against_samples(first: str, second: str) -> None:
    p, q = laws(3)[first], laws(3)[second]
    points = p.sample(torch.Size([20_000]), generator=torch.Generator().manual_seed(0))
    gap = p.log_prob(points) - q.log_prob(points)
    error = float(gap.std()) / math.sqrt(len(gap))
    assert abs(float(gap.mean() - kl_divergence(p, q))) < 4 * error


@pytest.mark.slow
def test_derivatives() -> None:
    root, other = covariance(3, 6).requires_grad_(), covariance(3, 7).requires_grad_()
    mean = torch.tensor([0.5, 1.0, -0.7], dtype=torch.float64, requires_grad=True)

    def to_central(mean: Tensor, root: Tensor, other: Tensor) -> Tensor:
        p = GeneralAngularGaussian(mean, covariance_matrix=root @ root.mT)
        return kl_divergence(p, AngularCentralGaussian(other @ other.mT))

    def on_the_circle(mean: Tensor, root: Tensor, kappa: Tensor) -> Tensor:
        p = GeneralAngularGaussian(mean[:2], covariance_matrix=root[:2, :2] @ root[:2, :2].mT)
        return kl_divergence(p, VonMisesFisher(torch.eye(2, dtype=torch.float64)[1], kappa))

    assert torch.autograd.gradcheck(to_central, (mean, root, other))
    kappa = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(on_the_circle, (mean, root, kappa))


def test_batches_and_dtypes() -> None:
    eye = torch.eye(2)
    p = GeneralAngularGaussian(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), covariance_matrix=eye)
    q: Any = VonMisesFisher(eye[0], torch.tensor([[0.5], [1.0], [2.0]]))
    for first, second in ((p, q), (q, p), (p, AngularCentralGaussian(eye.expand(3, 1, 2, 2)))):
        value = kl_divergence(first, second)
        assert value.shape == (3, 2)
        assert value.dtype == torch.float32
    plain = AngularGaussian(eye[:2], torch.tensor([1.0, 2.0]))
    assert torch.allclose(kl_divergence(p, q), kl_divergence(plain, q), atol=1e-6)
    assert p.entropy().tolist() == pytest.approx(plain.entropy().tolist(), rel=1e-6)


def test_what_is_not_computed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = torch.diag(torch.tensor([1e12, 1.0], dtype=torch.float64))
    narrow = GeneralAngularGaussian(torch.zeros(2), covariance_matrix=wide)
    # By adaptive quadrature of SciPy, with intervals down to 1e-8 about the singularities.
    assert float(kl_divergence(laws(2)["cauchy"], narrow)) == pytest.approx(12.1415374577)
    monkeypatch.setattr("sterad.sphere.surface_divergence.MAX_REFINEMENTS", 1)
    with pytest.raises(ValueError, match=r"has not converged .* one law is too narrow"):
        kl_divergence(laws(2)["cauchy"], narrow)
    with pytest.raises(ValueError, match="3 and 4 dimensions"):
        kl_divergence(laws(3)["general"], laws(4)["central"])
