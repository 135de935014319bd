"""Maximum likelihood for the direction of a Gaussian vector with a mean and a covariance."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor

from sterad.sphere.covariance import cholesky_or_error, unit_determinant
from sterad.sphere.fit import Fit, check_number
from sterad.sphere.maximum_likelihood import split_resultant
from sterad.sphere.observed_information import MAX_PARAMETERS, DeferredErrors, gaussian_errors
from sterad.sphere.quadrature import log_area, log_chi_mgf
from sterad.sphere.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian

MAX_STEPS = 2000
GRADIENT_TOLERANCE = 1e-9
"""Largest derivative of the mean log-likelihood in any parameter at the maximum."""
CONVERGED_GRADIENT = 1e-5
"""Derivative below which a fit counts as converged: rounding may stop the search above the
tolerance."""
MAX_SOLVE_STEPS = 1000
SOLVE_TOLERANCE = 1e-4
"""Length of the residual, relative to the right side, at which conjugate gradients end: the error
of the variance is of the order of its square, 1e-8."""

Parameters = Sequence[Tensor]
FactorOf = Callable[[Tensor, Tensor], Tensor]
Law = TypeVar("Law", bound="GeneralAngularGaussian")


def unit_factor(raw: Tensor) -> Tensor:
    """Return lower factors of determinant 1 from any matrices: the diagonal holds logarithms.

    >>> unit_factor(torch.zeros(1, 2, 2))
    tensor([[[1., 0.],
             [0., 1.]]])
    """
    diagonal = raw.diagonal(dim1=-2, dim2=-1)
    diagonal = (diagonal - diagonal.mean(-1, keepdim=True)).exp()
    return raw.tril(-1) + torch.diag_embed(diagonal)


def raw_factor(matrix: Tensor) -> Tensor:
    """Return the inverse of `unit_factor` for the factor of a positive definite matrix."""
    factor = cholesky_or_error(matrix)
    return factor.tril(-1) + torch.diag_embed(factor.diagonal(dim1=-2, dim2=-1).log())


def moment_start(data: WeightedPoints) -> tuple[Tensor, Tensor]:
    """Return a mean and the parameters of `unit_factor`, from the moments of the points."""
    count = data.count[:, None]
    mean = data.resultant() / count
    scatter = data.scatter() / count.unsqueeze(-1)
    matrix = scatter - mean.unsqueeze(-1) * mean.unsqueeze(-2)
    # Nearly equal lengths hide the variance along the mean: take that of the other directions.
    floor = matrix.diagonal(dim1=-2, dim2=-1).mean(-1)
    unit, _ = split_resultant(mean, torch.ones_like(floor))
    matrix = matrix + floor[:, None, None] * unit.unsqueeze(-1) * unit.unsqueeze(-2)
    raw = raw_factor(matrix)
    scale = raw.diagonal(dim1=-2, dim2=-1).mean(-1).exp()
    return mean / scale[:, None], raw_factor(unit_determinant(matrix))


def pack(mean: Tensor, raw: Tensor) -> Tensor:
    """Return the free parameters of a mean and of `unit_factor`: (k, p).

    The last entry of the diagonal becomes zero: a constant added to all of them changes nothing.
    """
    rows, columns = torch.tril_indices(*raw.shape[-2:], device=raw.device)[:, :-1]
    shift = torch.where(rows == columns, raw[..., -1, -1:], 0.0)
    return torch.cat([mean, raw[..., rows, columns] - shift], -1)


def unpack(place: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the parameters, (k, size, size), of `unit_factor`."""
    rows, columns = torch.tril_indices(size, size, device=place.device)[:, :-1]
    split = place.shape[-1] - len(rows)
    units = torch.zeros(len(rows), size, size, dtype=place.dtype, device=place.device)
    units[torch.arange(len(rows), device=place.device), rows, columns] = 1
    return place[..., :split], torch.tensordot(place[..., split:], units, 1)


def maximize_gaussian(
    cls: type[Law], data: WeightedPoints, start: tuple[Tensor, Tensor], factor_of: FactorOf
) -> Fit[Law]:
    """Return the fit of a law whose factor of Σ is a function of m and of `unit_factor`."""

    def objective(values: Parameters) -> Tensor:
        return gaussian_log_likelihood(data, values[0], factor_of(*values)) / data.count

    (mean, raw), slopes = maximize_jointly(objective, start)
    factor, place = factor_of(mean, raw), pack(mean, raw)
    batch, like, d = data.batch_shape, data.points, data.dimension
    with torch.no_grad():
        log_likelihood = gaussian_log_likelihood(data, mean, factor)

    def chart(place: Tensor) -> tuple[Tensor, Tensor]:
        mean, free = unpack(place, raw.shape[-1])
        return mean, factor_of(mean, free)

    def errors() -> dict[str, Tensor]:
        all_errors = gaussian_errors(data, chart, place)
        if place.shape[1] > MAX_PARAMETERS and hasattr(cls, "concentration"):
            length = functional_error(data, (mean, raw), factor_of, lambda m, _: m.norm(dim=1))
            all_errors = replace(all_errors, length=length)
        found = cls.named_errors(all_errors)
        return {name: x.reshape(batch + x.shape[1:]).to(like) for name, x in found.items()}

    def law_of(mean: Tensor, factor: Tensor, validate_args: bool | None = None) -> Law:
        shaped = mean.reshape(*batch, d), factor.reshape(*batch, d, d)
        law: Law = cast(Any, cls)(shaped[0], scale_tril=shaped[1], validate_args=validate_args)
        return law

    def error_of(function: Callable[[Law], Tensor]) -> Tensor:
        def number(mean: Tensor, factor: Tensor) -> Tensor:
            value = function(law_of(mean, factor, validate_args=False))
            return check_number(value, batch).flatten()

        return functional_error(data, (mean, raw), factor_of, number).reshape(batch).to(like)

    return Fit(
        law=law_of(mean.to(like), factor.to(like)),
        log_likelihood=log_likelihood.reshape(batch).to(like),
        standard_errors=DeferredErrors(errors),
        count=data.count.reshape(batch).to(like),
        n_parameters=place.shape[1],
        at_limit=torch.zeros(batch, dtype=torch.bool, device=like.device),
        converged=(slopes <= CONVERGED_GRADIENT).reshape(batch).to(like.device),
        error_of=error_of,
    )


def gaussian_log_likelihood(data: WeightedPoints, mean: Tensor, factor: Tensor) -> Tensor:
    """Return the weighted sum of log-densities with respect to area: (k,).

    mean: (k, d); factor: (k, d, d), the lower Cholesky factor of the covariance. float64.
    """
    d = data.dimension
    center = torch.linalg.solve_triangular(factor, mean.unsqueeze(-1), upper=False)
    log_volume = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) + log_area(d)
    total: Tensor = -data.count * (center.square().sum((-2, -1)) / 2 + log_volume)
    for rows, weights in data.chunks():
        white = torch.linalg.solve_triangular(factor, rows.mT, upper=False)
        a = white.square().sum(-2)
        gamma = (white * center).sum(-2) / a.sqrt()
        total = total + (weights * (log_chi_mgf(gamma, d) - d / 2 * a.log())).sum(-1)
    return total


def functional_error(
    data: WeightedPoints, start: Parameters, factor_of: FactorOf, function: FactorOf
) -> Tensor:
    """Return the standard error of function(mean, factor), (k,), from the observed information.

    The information matrix is not formed: a product of it with a vector costs two evaluations of
    the likelihood. At the maximum the function has gradient g, and its variance is gᵀ I⁻¹ g.
    """
    with torch.enable_grad():
        values = [x.detach().clone().requires_grad_() for x in start]
        factor = factor_of(*values)
        output = function(values[0], factor)
        total = gaussian_log_likelihood(data, values[0], factor).sum()
        slopes = torch.autograd.grad(total, values, create_graph=True)
    gradients = torch.autograd.grad(
        output.sum(), values, retain_graph=True, allow_unused=True, materialize_grads=True
    )

    def product(vector: Tensor) -> Tensor:
        parts = vector.split([x[0].numel() for x in values], dim=1)
        shaped = [x.reshape(like.shape) for x, like in zip(parts, values, strict=True)]
        second = torch.autograd.grad(slopes, values, shaped, retain_graph=True)
        return -torch.cat([x.flatten(1) for x in second], 1)

    return solve_quadratic(product, torch.cat([x.flatten(1) for x in gradients], 1)).sqrt()


def solve_quadratic(product: Callable[[Tensor], Tensor], vector: Tensor) -> Tensor:
    """Return vᵀ A⁻¹ v for k positive definite A given by products, by conjugate gradients: (k,).

    vector: (k, p). Infinite where A is not positive definite or the iteration does not end.

    >>> scale = torch.tensor([[1.0, 4.0]])
    >>> value = solve_quadratic(lambda v: scale * v, torch.tensor([[1.0, 2.0]]))
    >>> round(value.item(), 5)
    2.0
    """
    solution, residual, direction = torch.zeros_like(vector), vector, vector
    square = first = residual.square().sum(-1)
    is_definite = torch.ones_like(square, dtype=torch.bool)
    for _ in range(MAX_SOLVE_STEPS):
        is_open = square > SOLVE_TOLERANCE**2 * first
        if not bool(is_open.any()):
            break
        image = product(direction)
        curvature = (direction * image).sum(-1)
        is_definite &= (curvature > 0) | ~is_open
        step = torch.where(is_open & (curvature > 0), square / curvature, 0.0).unsqueeze(-1)
        solution, residual = solution + step * direction, residual - step * image
        new = residual.square().sum(-1)
        direction = residual + (new / square).unsqueeze(-1) * direction
        square = new
    is_known = is_definite & (square <= SOLVE_TOLERANCE**2 * first)
    return torch.where(is_known, (vector * solution).sum(-1), torch.inf)


def maximize_jointly(
    objective: Callable[[Parameters], Tensor], start: Parameters
) -> tuple[list[Tensor], Tensor]:
    """Maximize (k,) functions of parameters (k, ...) each, by L-BFGS on their sum.

    Returns the parameters and the largest derivative of each function at the end.
    """
    values = [x.detach().clone().requires_grad_() for x in start]
    optimizer = torch.optim.LBFGS(
        values,
        max_iter=MAX_STEPS,
        tolerance_grad=GRADIENT_TOLERANCE,
        tolerance_change=1e-15,
        history_size=30,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = -objective(values).sum()
        loss.backward()
        return loss

    with torch.enable_grad():
        optimizer.step(closure)
        gradients = torch.autograd.grad(objective(values).sum(), values)
    slopes = torch.stack([x.flatten(1).abs().amax(1) for x in gradients]).amax(0)
    return [x.detach() for x in values], slopes
