"""Standard errors of laws with a covariance, against a Hessian written out and by coverage."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.sphere import (
    AngularCentralGaussian,
    EllipticallySymmetricAngularGaussian,
    GeneralAngularGaussian,
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
        return objective(at) - (multipliers * equations(at)).sum()

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
    for module in ("observed_information", "angular_central_gaussian"):
        monkeypatch.setattr(f"sterad.sphere.{module}.MAX_PARAMETERS", 4)
    limited = law.fit(points).standard_errors["covariance_matrix"]
    if law is AngularCentralGaussian:  # the expected information has a closed form
        assert torch.allclose(limited, observed, rtol=0.1)
    else:
        assert bool(limited.isinf().all())


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "count"), [(3, 500), (16, 1500)])
@each_law
def test_coverage(law: Any, dimension: int, count: int) -> None:
    """The intervals of one entry of Σ, and of the concentration if there is one."""
    true = true_law(law, dimension)
    names = ["covariance_matrix"]
    if law is EllipticallySymmetricAngularGaussian:
        names.append("concentration")
    covered = dict.fromkeys(names, 0)
    for seed in range(4):
        fit = law.fit(draw(law, dimension, 50, count, seed=seed))
        assert bool(fit.converged.all())
        for name in names:
            low, high = fit.confidence_interval(0.95, name)
            value = getattr(true, name)
            inside = (low < value) & (value < high)
            covered[name] += int((inside[..., 0, 1] if inside.dim() == 3 else inside).sum())
    shares = {name: number / 200 for name, number in covered.items()}
    assert all(0.92 <= share <= 0.98 for share in shares.values()), shares
