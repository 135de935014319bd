"""Maximum likelihood for the direction of a Gaussian vector with a mean and a covariance."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor

from sterad.sphere.covariance import cholesky_or_error, unit_determinant
from sterad.sphere.fit import Fit
from sterad.sphere.maximum_likelihood import split_resultant
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

Parameters = Sequence[Tensor]
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


def gaussian_fit(
    cls: type[Law],
    data: WeightedPoints,
    mean: Tensor,
    factor: Tensor,
    slopes: Tensor,
    n_parameters: int,
) -> Fit[Law]:
    """Return the fit of a law with this mean and factor, in the dtype of the points."""
    batch, like, d = data.batch_shape, data.points, data.dimension
    with torch.no_grad():
        log_likelihood = gaussian_log_likelihood(data, mean, factor)
    return Fit(
        law=cast(Any, cls)(
            mean.reshape(*batch, d).to(like), scale_tril=factor.reshape(*batch, d, d).to(like)
        ),
        log_likelihood=log_likelihood.reshape(batch).to(like),
        standard_errors={},
        count=data.count.reshape(batch).to(like),
        n_parameters=n_parameters,
        at_limit=torch.zeros(batch, dtype=torch.bool, device=like.device),
        converged=(slopes <= CONVERGED_GRADIENT).reshape(batch).to(like.device),
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
