"""Standard errors of laws with a covariance, against a Hessian written out and by coverage."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere import (
    AngularCentralGaussian,
    EllipticallySymmetricAngularGaussian,
    GeneralAngularGaussian,
    VonMisesFisher,
)

LAWS: list[Any] = [
    AngularCentralGaussian,
    GeneralAngularGaussian,
    EllipticallySymmetricAngularGaussian,
]
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)


def true_law(law: Any, d: int) -> Any:
    """Return a law whose parameters are far from a symmetric case."""
    generator = torch.Generator().manual_seed(d)
    noise = torch.randn(d, d, generator=generator, dtype=torch.float64)
    # The unit of √d keeps the condition number alike in every dimension.
    matrix = torch.eye(d, dtype=torch.float64) + noise @ noise.mT / d
    mean = torch.linspace(-0.5, 2.0, d, dtype=torch.float64) * (3 / d) ** 0.5
    if law is AngularCentralGaussian:
        return law(matrix / torch.linalg.det(matrix) ** (1 / d))
    if law is GeneralAngularGaussian:
        scale = torch.linalg.det(matrix) ** (1 / d)
        return law(mean, covariance_matrix=matrix / scale)
    return law.from_tangent(2 * mean, matrix[1:, 1:])


def draw(law: Any, d: int, *shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    points: Tensor = true_law(law, d).sample(torch.Size(shape), generator=generator)
    return points


def constraints(law: Any, loc: Tensor, matrix: Tensor) -> Tensor:
    """Return functions of m and Σ that are zero on the law's parameters."""
    equal = [torch.logdet(matrix).reshape(1)]
    if law is EllipticallySymmetricAngularGaussian:
        equal.append(matrix @ loc - loc)
    return torch.cat(equal)


def log_likelihood(law: Any, points: Tensor, loc: Tensor, matrix: Tensor) -> Tensor:
    """Return the sum of log-densities, by the law's own log_prob."""
    if law is AngularCentralGaussian:
        value: Tensor = law(matrix, validate_args=False).log_prob(points).sum()
        return value
    general = GeneralAngularGaussian(loc, covariance_matrix=matrix, validate_args=False)
    return general.log_prob(points).sum()


def lagrangian_errors(law: Any, fit: Any, points: Tensor) -> Tensor:
    """Return standard errors from the bordered Hessian in (m, vech Σ): no chart is used."""
    d = points.shape[-1]
    rows, columns = torch.tril_indices(d, d)
    has_mean = law is not AngularCentralGaussian
    loc = fit.law.loc if has_mean else torch.zeros(0, dtype=torch.float64)
    place = torch.cat([loc, fit.law.covariance_matrix[rows, columns]])

    def split(at: Tensor) -> tuple[Tensor, Tensor]:
        lower = torch.zeros(d, d, dtype=at.dtype).index_put((rows, columns), at[len(loc) :])
        return at[: len(loc)], lower + lower.tril(-1).mT

    def objective(at: Tensor) -> Tensor:
        return log_likelihood(law, points, *split(at))

    def equations(at: Tensor) -> Tensor:
        return constraints(law, *split(at))

    slope = torch.autograd.functional.jacobian(objective, place)
    border = torch.autograd.functional.jacobian(equations, place)
    multipliers = torch.linalg.lstsq(border.mT, slope.unsqueeze(-1)).solution.squeeze(-1)

    def lagrangian(at: Tensor) -> Tensor:
        value: Tensor = objective(at) - (multipliers * equations(at)).sum()
        return value

    information = -torch.autograd.functional.hessian(lagrangian, place)
    tangent = torch.linalg.svd(border)[2][torch.linalg.matrix_rank(border) :].mT
    inverse = tangent @ torch.linalg.inv(tangent.mT @ information @ tangent) @ tangent.mT
    errors = inverse.diagonal().clamp_min(0).sqrt()
    mean, matrix = split(errors)
    return torch.cat([mean, matrix.flatten()])


@each_law
def test_against_the_bordered_hessian(law: Any) -> None:
    points = draw(law, 3, 60)
    fit = law.fit(points)
    names = ["covariance_matrix"] if law is AngularCentralGaussian else ["loc", "covariance_matrix"]
    found = torch.cat([fit.standard_errors[name].flatten() for name in names])
    assert torch.allclose(found, lagrangian_errors(law, fit, points), rtol=1e-5)


def test_length_and_direction_of_the_mean() -> None:
    """Along and across the mean the variances of its coordinates add up to the sum of all."""
    fit = EllipticallySymmetricAngularGaussian.fit(draw(LAWS[2], 4, 100))
    errors = fit.standard_errors
    across = 3 * (errors["mean_direction"] * fit.law.concentration).square()
    total = errors["concentration"].square() + across
    assert total.item() == pytest.approx(errors["loc"].square().sum().item(), rel=1e-10)
    low, high = fit.confidence_interval(0.95)
    assert bool(low < fit.law.concentration) & bool(fit.law.concentration < high)


@each_law
def test_groups_and_chunks_change_nothing(law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    points = draw(law, 3, 5, 40)
    whole = law.fit(points).standard_errors["covariance_matrix"]
    monkeypatch.setattr("sterad.sphere.observed_information.GROUP_NUMBERS", 150)
    parts = law.fit(points).standard_errors["covariance_matrix"]
    assert whole.shape == (5, 3, 3)
    assert torch.allclose(whole, parts, rtol=1e-9)


@each_law
def test_too_many_parameters(law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    points = draw(law, 3, 2000)
    observed = law.fit(points).standard_errors["covariance_matrix"]
    for module in ("observed_information", "angular_central_gaussian", "gaussian_fit"):
        monkeypatch.setattr(f"sterad.sphere.{module}.MAX_PARAMETERS", 4)
    limited = law.fit(points).standard_errors["covariance_matrix"]
    if law is AngularCentralGaussian:  # the expected information has a closed form
        assert torch.allclose(limited, observed, rtol=0.1)
    else:
        assert bool(limited.isinf().all())


@pytest.mark.parametrize("dimension", [3, 8])
def test_the_error_of_a_length_without_the_matrix(
    dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = EllipticallySymmetricAngularGaussian
    points = draw(law, dimension, 3, 40 * dimension)
    expected = law.fit(points).standard_errors["concentration"]
    for module in ("observed_information", "gaussian_fit"):
        monkeypatch.setattr(f"sterad.sphere.{module}.MAX_PARAMETERS", 4)
    fit = law.fit(points)
    assert torch.allclose(fit.standard_errors["concentration"], expected, rtol=1e-6)
    assert bool(fit.standard_errors["loc"].isinf().all())
    low, high = fit.confidence_interval(0.95)
    assert bool(((low > 0) & (low < fit.law.concentration) & (high < torch.inf)).all())


@pytest.mark.parametrize("law", [GeneralAngularGaussian, EllipticallySymmetricAngularGaussian])
@pytest.mark.parametrize("dimension", [3, 8])
def test_errors_of_functions_are_those_of_the_matrix(law: Any, dimension: int) -> None:
    fit = law.fit(draw(law, dimension, 2, 40 * dimension))
    errors = fit.standard_errors
    for found, expected in (
        (fit.standard_error_of(lambda law: law.loc[:, 1]), errors["loc"][:, 1]),
        (
            fit.standard_error_of(lambda law: law.covariance_matrix[:, 2, 0]),
            errors["covariance_matrix"][:, 2, 0],
        ),
        (fit.standard_error_of(lambda law: 3 * law.loc[:, 0]), 3 * errors["loc"][:, 0]),
    ):
        assert torch.allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda law: law.loc, r"returned \(3,\).*shape \(\)"),
        (lambda law: 2.0, "returned float"),
        (lambda law: law.loc[0].detach(), "torch can differentiate"),
    ],
)
def test_functions_without_a_standard_error(function: Any, words: str) -> None:
    fit = GeneralAngularGaussian.fit(draw(GeneralAngularGaussian, 3, 50))
    with pytest.raises(SteradError, match=words):
        fit.standard_error_of(function)


def test_laws_of_a_cosine_have_no_errors_of_functions() -> None:
    law = VonMisesFisher(torch.eye(3)[0], 5.0)
    fit = VonMisesFisher.fit(law.sample(torch.Size([50])))
    with pytest.raises(SteradError, match=r"standard_errors \(.*concentration"):
        fit.standard_error_of(lambda law: law.concentration)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "dimension", "count", "fits"),
    [
        *((law, 3, 500, 200) for law in LAWS),
        *((law, 16, 1500, 12) for law in LAWS),
        (AngularCentralGaussian, 128, 1500, 2),  # from the expected information
    ],
)
def test_coverage(law: Any, dimension: int, count: int, fits: int) -> None:
    """The share of all entries of Σ in their intervals: 12 fits of 136 entries have 1,632."""
    true, shares = true_law(law, dimension), []
    rows, columns = torch.tril_indices(dimension, dimension)
    for seed in range(max(1, fits // 40)):
        fit = law.fit(draw(law, dimension, min(fits, 40), count, seed=seed))
        assert bool(fit.converged.all())
        low, high = fit.confidence_interval(0.95, "covariance_matrix")
        inside = (low < true.covariance_matrix) & (true.covariance_matrix < high)
        shares.append(inside[:, rows, columns].double().mean())
    share = float(torch.stack(shares).mean())
    assert 0.92 <= share <= 0.98, share


@pytest.mark.slow
def test_coverage_of_a_length() -> None:
    law, shares = EllipticallySymmetricAngularGaussian, []
    kappa = true_law(law, 3).concentration
    for seed in range(4):
        low, high = law.fit(draw(law, 3, 50, 500, seed=seed)).confidence_interval(0.95)
        shares.append(((low < kappa) & (kappa < high)).double().mean())
    share = float(torch.stack(shares).mean())
    assert 0.92 <= share <= 0.98, share
