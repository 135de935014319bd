"""Fits: what they return, equal ways to ask for them, limits, and bad input."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.sphere import (
    AngularCentralGaussian,
    AngularGaussian,
    EllipticallySymmetricAngularGaussian,
    GeneralAngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphericalCauchy,
    Uniform,
    VonMisesFisher,
    Watson,
)

ROTATIONAL: list[Any] = [
    VonMisesFisher,
    PowerSpherical,
    SphericalCauchy,
    AngularGaussian,
    ProjectedStudentT,
    Watson,
]
COVARIANCE: list[Any] = [
    AngularCentralGaussian,
    GeneralAngularGaussian,
    EllipticallySymmetricAngularGaussian,
]
EVERY = [Uniform, *ROTATIONAL, *COVARIANCE]

each_law = pytest.mark.parametrize("law", EVERY, ids=lambda law: law.__name__)
each_rotational = pytest.mark.parametrize("law", ROTATIONAL, ids=lambda law: law.__name__)


def draw(*shape: int, kappa: float = 5.0, seed: int = 0) -> Tensor:
    law = VonMisesFisher(torch.eye(shape[-1], dtype=torch.float64)[0], kappa)
    return law.sample(torch.Size(shape[:-1]), generator=torch.Generator().manual_seed(seed))


@each_law
def test_fit_and_fit_batch_agree(law: Any) -> None:
    points = draw(40, 3)
    weights = torch.rand(2, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    shared = law.fit_batch(points, weights)
    batched = law.fit(points.expand(2, 40, 3), weights)
    single = law.fit(points, weights[1])
    assert shared.law.batch_shape == (2,)
    assert torch.allclose(shared.log_likelihood, batched.log_likelihood, rtol=1e-9)
    assert single.log_likelihood.item() == pytest.approx(shared.log_likelihood[1].item(), rel=1e-9)
    assert torch.allclose(shared.count, weights.sum(1))
    assert bool(shared.converged.all())


@each_law
def test_log_likelihood_and_criteria(law: Any) -> None:
    points = draw(60, 3)
    fit = law.fit(points)
    expected = fit.law.log_prob(points).sum()
    assert fit.log_likelihood.item() == pytest.approx(expected.item(), rel=1e-10)
    parameters = {Uniform: 0, AngularCentralGaussian: 5, GeneralAngularGaussian: 8}
    expected_count = parameters.get(law, 5 if law is EllipticallySymmetricAngularGaussian else 3)
    assert fit.n_parameters == expected_count
    assert fit.aic.item() == pytest.approx(2 * expected_count - 2 * expected.item())
    penalty = expected_count * torch.log(torch.tensor(60.0)).item()
    assert fit.bic.item() == pytest.approx(penalty - 2 * expected.item(), rel=1e-6)


@each_law
def test_an_integer_weight_repeats_a_point(law: Any) -> None:
    points = draw(30, 3)
    weights = torch.arange(30) % 3
    repeated = points.repeat_interleave(weights, 0)
    weighted, plain = law.fit(points, weights), law.fit(repeated)
    assert torch.allclose(weighted.log_likelihood, plain.log_likelihood, rtol=1e-9)
    for name, error in plain.standard_errors.items():
        assert torch.allclose(weighted.standard_errors[name], error, rtol=1e-6)


@each_law
def test_the_dtype_of_the_points_is_kept_and_lists_are_accepted(law: Any) -> None:
    points = draw(40, 3)
    single, double = law.fit(points.float()), law.fit(points.numpy())
    assert single.log_likelihood.dtype == torch.float32
    assert double.log_likelihood.dtype == torch.float64
    assert single.log_likelihood.item() == pytest.approx(double.log_likelihood.item(), rel=1e-4)
    assert law.fit(points.tolist()).law.event_shape == (3,)


@each_rotational
def test_no_other_parameters_near_are_more_likely(law: Any) -> None:
    points = draw(3, 50, 4)
    fit = law.fit(points)
    shape = {"df": 3.0} if law is ProjectedStudentT else {}
    generator = torch.Generator().manual_seed(2)
    for scale in (1e-3, 1e-2, 0.1):
        noise = torch.randn(3, 4, generator=generator, dtype=torch.float64)
        pole = normalize(fit.law.mean_direction + scale * noise, dim=1)
        factor = torch.exp(scale * torch.randn(3, generator=generator, dtype=torch.float64))
        other = law(pole, fit.law.concentration * factor, **shape)
        likelihood = other.log_prob(points.movedim(1, 0)).sum(0)
        assert bool((likelihood < fit.log_likelihood).all())


@each_rotational
def test_standard_errors_are_those_of_the_hessian(law: Any) -> None:
    points = draw(80, 3)
    fit = law.fit(points)
    shape = {"df": 3.0} if law is ProjectedStudentT else {}
    mu, kappa = fit.law.mean_direction, fit.law.concentration
    basis = torch.linalg.svd(mu.unsqueeze(0))[2][1:]

    def log_likelihood(place: Tensor) -> Tensor:
        pole = normalize(mu + place[:2] @ basis, dim=0)
        value = law(pole, kappa + place[2], validate_args=False, **shape).log_prob(points).sum()
        assert isinstance(value, Tensor)
        return value

    zero = torch.zeros(3, dtype=torch.float64)
    information = -torch.autograd.functional.hessian(log_likelihood, zero)
    error = torch.linalg.inv(information)[2, 2].sqrt()
    assert fit.standard_errors["concentration"].item() == pytest.approx(error.item(), rel=1e-6)
    curvature = information[:2, :2].diagonal().mean()
    found = fit.standard_errors["mean_direction"].item()
    assert found == pytest.approx(curvature.rsqrt().item(), rel=1e-6)
    gradient = torch.autograd.functional.jacobian(log_likelihood, zero)
    assert bool((gradient.abs() * error < 1e-6).all())


@each_rotational
def test_equal_points_and_a_single_point(law: Any) -> None:
    point = normalize(torch.tensor([[1.0, 2.0, 2.0]], dtype=torch.float64))
    for points in (point, point.expand(7, 3)):
        fit = law.fit(points)
        assert bool(fit.at_limit)
        assert fit.law.concentration.item() >= 1e4
        cosine = (fit.law.mean_direction * point).sum().abs()
        assert cosine.item() == pytest.approx(1)
        assert fit.standard_errors["concentration"].item() == torch.inf
        assert fit.log_likelihood.isfinite()


@pytest.mark.parametrize("law", ROTATIONAL[:5], ids=lambda law: law.__name__)
def test_antipodal_pairs_give_the_uniform_law(law: Any) -> None:
    points = draw(10, 4)
    fit = law.fit(torch.cat([points, -points]))
    assert bool(fit.at_limit)
    assert fit.law.concentration.item() == 0
    assert fit.standard_errors["mean_direction"].item() == torch.inf
    assert fit.standard_errors["concentration"].isfinite()
    assert fit.log_likelihood.item() == pytest.approx(Uniform.fit(points).log_likelihood * 2)


def test_a_batch_may_mix_ordinary_fits_with_limits() -> None:
    ordinary = draw(6, 3)
    pairs = torch.cat([ordinary[:3], -ordinary[:3]])
    equal = ordinary[:1].expand(6, 3)
    fit = SphericalCauchy.fit(torch.stack([ordinary, pairs, equal]))
    assert fit.at_limit.tolist() == [False, True, True]
    alone = SphericalCauchy.fit(ordinary)
    assert fit.law.concentration[0].item() == pytest.approx(alone.law.concentration.item())
    assert bool(fit.log_likelihood.isfinite().all())


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    points = draw(2, 500, 3)
    whole = AngularGaussian.fit(points), VonMisesFisher.fit(points)
    monkeypatch.setattr("sterad.sphere.weighted_points.CHUNK_NUMBERS", 600)
    monkeypatch.setattr("sterad.sphere.newton.KERNEL_CHUNK", 64)
    parts = AngularGaussian.fit(points), VonMisesFisher.fit(points)
    for one, other in zip(whole, parts, strict=True):
        assert torch.allclose(one.law.concentration, other.law.concentration, rtol=1e-9)


@each_law
@pytest.mark.parametrize(
    ("points", "weights", "message"),
    [
        (torch.ones(4, 3), None, "length 1.73205, .*unit sphere"),
        (torch.full((4, 3), torch.nan), None, "NaN or infinite"),
        (torch.eye(3)[0], None, r"shape \(3,\)"),
        (torch.zeros(0, 3), None, "at least one row"),
        (torch.eye(3), torch.ones(2), "one weight for each point"),
        (torch.eye(3), torch.tensor([1.0, -1.0, 1.0]), "a weight is -1, .*at least 0"),
        (torch.eye(3), torch.tensor([1.0, torch.nan, 1.0]), "a weight is nan"),
        (torch.eye(3), torch.zeros(3), "all weights of a fit are zero"),
        ([["a", "b"]], None, "points"),
    ],
)
def test_bad_input(law: Any, points: Any, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        law.fit(points, weights)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: VonMisesFisher.fit_batch(torch.eye(3), torch.ones(3)), r"\(k, 3\)"),
        (lambda: VonMisesFisher.fit_batch(draw(2, 4, 3), torch.ones(2, 4)), "use fit"),
        (lambda: VonMisesFisher.fit(draw(5, 3), df=1.0), "given df: leave it out"),
        (lambda: ProjectedStudentT.fit(draw(5, 3), concentration=1.0), "give only df"),
        (lambda: ProjectedStudentT.fit(draw(5, 3), df=-1.0), "df is -1"),
        (lambda: VonMisesFisher.fit(draw(5, 3)).confidence_interval(95), "level is 95"),
        (lambda: Uniform.fit(draw(5, 3)).confidence_interval(), "no concentration"),
        (
            lambda: VonMisesFisher.fit(draw(5, 3)).confidence_interval(0.9, "mean_direction"),
            "give one of concentration",
        ),
    ],
)
def test_bad_calls(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("law", COVARIANCE, ids=lambda law: law.__name__)
def test_a_covariance_needs_enough_points(law: Any) -> None:
    with pytest.raises(ValueError, match="covariance of 5 dimensions to 4 points"):
        law.fit(draw(4, 5))
    weights = torch.zeros(20)
    weights[:5] = 1
    with pytest.raises(ValueError, match="to 5 points with positive weight"):
        law.fit(draw(20, 5), weights)
    flat = torch.cat([draw(20, 3), torch.zeros(20, 1, dtype=torch.float64)], 1)
    with pytest.raises(ValueError, match="subspace of fewer than 4 dimensions"):
        law.fit(flat)
