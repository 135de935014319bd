"""Divergences of laws with a covariance in more than three dimensions, by second computations."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence
from torch.nn.functional import normalize

from sterad.sphere import (
    AngularGaussian,
    GeneralAngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphereDistribution,
    SphericalCauchy,
    VonMisesFisher,
    Watson,
)
from sterad.sphere.gaussian_cosine import cosine_mean
from sterad.sphere.gaussian_divergence import _kl, _mean_log_density
from sterad.sphere.gaussian_mixture import as_gaussian_mixture, gaussian_part
from sterad.sphere.gaussian_moments import direction_moments
from tests.sphere.test_gaussian_divergence import covariance, laws


def sphere_grid() -> tuple[Tensor, Tensor]:
    """Return points on the sphere in four dimensions and their areas: a product rule."""
    angle = torch.arange(1, 49, dtype=torch.float64) * math.pi / 49
    # Gauss's rule for the weight √(1 - t²) of the first coordinate.
    first, outer = angle.cos(), angle.sin().square() * math.pi / 49
    z, middle = (torch.from_numpy(x) for x in np.polynomial.legendre.leggauss(36))
    turn = torch.arange(72, dtype=torch.float64) * 2 * math.pi / 72
    rest = (1 - z.square()).sqrt()
    inner = torch.stack(
        [
            z[:, None].expand(36, 72),
            rest[:, None] * turn.cos(),
            rest[:, None] * turn.sin(),
        ],
        -1,
    ).reshape(-1, 3)
    points = torch.cat(
        [
            first[:, None, None].expand(48, len(inner), 1),
            angle.sin()[:, None, None] * inner,
        ],
        -1,
    )
    areas = outer[:, None] * (middle * 2 * math.pi / 72).repeat_interleave(72)
    return points.flatten(0, 1), areas.flatten()


def check_on_the_grid(first: str, second: str) -> None:
    p, q = laws(4)[first], laws(4)[second]
    points, areas = sphere_grid()
    log_p = p.log_prob(points)
    density = log_p.exp() * areas
    assert float(density.sum()) == pytest.approx(1, abs=1e-10)
    expected = float((density * (log_p - q.log_prob(points))).sum())
    assert float(kl_divergence(p, q)) == pytest.approx(expected, rel=2e-8)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("central", "agd"),
        ("agd", "general"),
        pytest.param("esag", "student", marks=pytest.mark.slow),
        pytest.param("general", "esag", marks=pytest.mark.slow),
    ],
)
def test_gaussian_directions_on_a_grid(first: str, second: str) -> None:
    check_on_the_grid(first, second)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("vmf", "general"), ("watson", "central")])
def test_laws_with_an_axis_on_a_grid(first: str, second: str) -> None:
    check_on_the_grid(first, second)


@pytest.mark.parametrize("d", [5, 16])
def test_the_cosine_has_the_moments_of_the_direction(d: int) -> None:
    mean = torch.linspace(-0.5, 2.0, d, dtype=torch.float64) * (3 / d) ** 0.5
    axis = normalize(mean.flip(0) - 0.3, dim=0)
    first, second = direction_moments(mean, torch.linalg.cholesky(covariance(d, 3)))
    cosine = cosine_mean(mean, covariance(d, 3), axis, lambda t: t)
    square = cosine_mean(mean, covariance(d, 3), axis, torch.square)
    assert cosine.item() == pytest.approx(float(axis @ first), abs=1e-9)
    assert square.item() == pytest.approx(float(axis @ second @ axis), abs=1e-9)


@pytest.mark.parametrize(
    "q",
    [
        lambda axis: SphericalCauchy(axis, 20.0),
        lambda axis: PowerSpherical(axis, 6.0),
        lambda axis: AngularGaussian(axis, 2.5),
    ],
)
def test_equal_variances_are_the_angular_gaussian(q: Any) -> None:
    eye = torch.eye(8, dtype=torch.float64)
    other = q(normalize(eye[0] + 0.7 * eye[3], dim=0))
    general = GeneralAngularGaussian(3.0 * eye[0], covariance_matrix=2.25 * eye)
    plain = AngularGaussian(eye[0], 2.0)
    there, back = kl_divergence(general, other), kl_divergence(plain, other)
    assert there.item() == pytest.approx(back.item(), rel=1e-8)


@pytest.mark.parametrize(
    "law",
    [
        VonMisesFisher,
        PowerSpherical,
        SphericalCauchy,
        lambda pole, kappa: ProjectedStudentT(pole, 0.2 * kappa, 2.5),
        Watson,
        lambda pole, kappa: Watson(pole, -kappa),
    ],
)
def test_a_law_with_an_axis_is_a_mixture_of_gaussian_directions(law: Any) -> None:
    pole = torch.eye(16, dtype=torch.float64)[0]
    found = law(pole, 12.0)
    k, weights, variance = as_gaussian_mixture(found.flatten())
    t = torch.linspace(-0.95, 0.95, 39, dtype=torch.float64)
    points = torch.zeros(39, 16, dtype=torch.float64)
    points[:, 0], points[:, 5] = t, (1 - t.square()).sqrt()
    parts = gaussian_part(pole, k, variance).log_prob(points.unsqueeze(1)).exp()
    circle = (1 - t.square()).pow(7.5)  # the mass is that of the density times this
    expected = found.log_prob(points).exp() * circle
    value = parts @ weights * circle
    assert torch.allclose(value, expected, rtol=0, atol=1e-7 * float(expected.max()))


@pytest.mark.slow
def test_the_mixture_and_the_law_itself_agree() -> None:
    """An angular Gaussian is a Gaussian direction; as a mixture it must give the same."""
    pole = torch.eye(16, dtype=torch.float64)[0]
    p, q = AngularGaussian(pole, 1.5).flatten(), laws(16)["general"].expand([1])

    class Unrecognized(VonMisesFisher):
        """The same law under a class that the divergence does not know."""

        log_kernel_at = staticmethod(AngularGaussian.log_kernel_at)

    same = Unrecognized(pole, 1.5).flatten()
    assert float(_mean_log_density(same, q)) == pytest.approx(float(_mean_log_density(p, q)), 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "first", "second"),
    [(5, "central", "power"), (16, "student", "esag"), (128, "general", "general-2")],
)
def test_against_samples(d: int, first: str, second: str) -> None:
    p, q = laws(d)[first], laws(d)[second]
    points = p.sample(torch.Size([20_000]), generator=torch.Generator().manual_seed(0))
    gap = p.log_prob(points) - q.log_prob(points)
    error = float(gap.std()) / math.sqrt(len(gap))
    assert abs(float(gap.mean() - kl_divergence(p, q))) < 4 * error


def test_a_law_and_itself_and_both_rotated() -> None:
    found, turn = laws(6), torch.linalg.qr(covariance(6, 9))[0]
    p, q = found["general"], found["esag"]
    assert isinstance(p, GeneralAngularGaussian)
    assert isinstance(q, GeneralAngularGaussian)
    assert float(_kl(p, p)) == pytest.approx(0, abs=1e-8)
    turned = [
        GeneralAngularGaussian(
            turn @ law.loc, covariance_matrix=turn @ law.covariance_matrix @ turn.mT
        )
        for law in (p, q)
    ]
    value = float(kl_divergence(p, q))
    assert value > 0
    assert float(kl_divergence(*turned)) == pytest.approx(value, rel=1e-8)


def test_batches_and_dtypes() -> None:
    eye = torch.eye(16)
    p = GeneralAngularGaussian(eye[:2] * 2, covariance_matrix=eye)
    q: Any = SphericalCauchy(eye[0], torch.tensor([[1.0], [3.0]]))
    value = kl_divergence(p, q)
    assert value.shape == (2, 2)
    assert value.dtype == torch.float32
    assert torch.allclose(value, kl_divergence(AngularGaussian(eye[:2], 2.0), q), atol=1e-6)


def test_what_is_not_computed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = laws(5)
    mean = torch.ones(5, dtype=torch.float64, requires_grad=True)
    p = GeneralAngularGaussian(mean, covariance_matrix=covariance(5, 1))
    with pytest.raises(ValueError, match=r"no gradients in 5 dimensions: .*torch\.no_grad"):
        kl_divergence(p, found["cauchy"])
    with torch.no_grad():
        assert float(kl_divergence(p, found["cauchy"])) > 0

    class Unknown(SphereDistribution):
        """A law of somebody else."""

        arg_constraints = {}

    with pytest.raises(NotImplementedError, match="computed in 2 and 3 dimensions, but not in 5"):
        kl_divergence(Unknown(event_shape=torch.Size([5])), found["cauchy"])
    monkeypatch.setattr("sterad.sphere.gaussian_cosine.MAX_NODES", 40)
    with pytest.raises(ValueError, match="its variances are too different"):
        kl_divergence(found["general"], found["cauchy"])
    for name, value in (("TOLERANCE", 0.0), ("SPACINGS", (0.5,)), ("VARIANCES", (0.5,))):
        monkeypatch.setattr(f"sterad.sphere.gaussian_mixture.{name}", value)
    with pytest.raises(ValueError, match="no mixture of Gaussian directions"):
        kl_divergence(found["vmf"], found["general"])
