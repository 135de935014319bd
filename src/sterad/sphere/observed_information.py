r"""Standard errors of a mean and a covariance, from the observed information.

With P = Σ⁻¹ and ν = Pm the log-likelihood of a point depends on a = uᵀPu and b = uᵀν, which are
linear in P and ν. For parameters θ, with F(a, b) the part of a point,

    ∂ᵢ∂ⱼ Σ w F = Σ w (F_aa ∂ᵢa ∂ⱼa + F_ab (∂ᵢa ∂ⱼb + ∂ᵢb ∂ⱼa) + F_bb ∂ᵢb ∂ⱼb)
               + ⟨G_P, ∂ᵢ∂ⱼP⟩ + ⟨G_ν, ∂ᵢ∂ⱼν⟩,   G_P = Σ w F_a uuᵀ,   G_ν = Σ w F_b u,

so that only matrix products depend on the number of points.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from sterad.sphere.quadrature import log_chi_mgf, pointwise_derivatives
from sterad.sphere.weighted_points import WeightedPoints, gather, outer_sum

MAX_PARAMETERS = 2000
"""Number of parameters above which the information matrix is not computed: 32 MB, and the time
grows with the fifth power of the dimension."""
GROUP_NUMBERS = 1 << 22
"""Derivatives of matrices that are held at once: 32 MB."""

Chart = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From free parameters, (k, p), to the mean, (k, d), and the lower factor of Σ, (k, d, d)."""


class DeferredErrors(Mapping[str, Tensor]):
    """Standard errors that are computed when they are first read: a mixture never reads them."""

    def __init__(self, compute: Callable[[], dict[str, Tensor]]) -> None:
        self._compute = compute

    @cached_property
    def _values(self) -> dict[str, Tensor]:
        return self._compute()

    def __getitem__(self, name: str) -> Tensor:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True)
class GaussianErrors:
    """Standard errors of k means and covariances; infinite where the data do not determine them."""

    loc: Tensor
    """(k, d)."""
    covariance_matrix: Tensor
    """(k, d, d)."""
    length: Tensor
    """Of the length of the mean: (k,)."""
    angle: Tensor
    """Of the direction of the mean, the root mean square over tangent directions: (k,)."""


@torch.no_grad()
def gaussian_errors(data: WeightedPoints, chart: Chart, place: Tensor) -> GaussianErrors:
    """Return the standard errors at the maximum `place`, (k, p) float64.

    All are infinite for more than MAX_PARAMETERS parameters.
    """
    d, count = data.dimension, place.shape[1]
    size = max(1, GROUP_NUMBERS // max(1, d * d * count))
    groups = range(0, len(place), size)
    variances = [
        _variances(_select(data, first, size), chart, place[first : first + size])
        for first in groups
    ]
    loc, matrix, length, angle = (torch.cat(x) for x in zip(*variances, strict=True))
    return GaussianErrors(loc.sqrt(), matrix.sqrt(), length.sqrt(), angle.sqrt())


def observed_information(data: WeightedPoints, chart: Chart, place: Tensor) -> Tensor:
    """Return minus the second derivatives of the log-likelihood: (k, p, p)."""
    d, count = data.dimension, place.shape[1]

    def natural(at: Tensor) -> Tensor:
        mean, factor = chart(at)
        eye = torch.eye(d, dtype=at.dtype, device=at.device)
        white = torch.linalg.solve_triangular(factor, eye, upper=False)
        precision = white.mT @ white
        image = (precision @ mean.unsqueeze(-1)).squeeze(-1)
        return torch.cat([precision.flatten(-2), image], -1)

    center, tangents = natural(place), _derivatives(natural, place)
    total = torch.zeros(len(place), count, count, dtype=place.dtype, device=place.device)
    pull = torch.zeros_like(center)
    for rows, weights in data.chunks(max(1, GROUP_NUMBERS // (len(place) * max(d * d, count)))):
        squares = (rows.unsqueeze(-1) * rows.unsqueeze(-2)).flatten(-2)
        a = (squares @ center[:, : d * d, None]).squeeze(-1)
        b = (rows @ center[:, d * d :, None]).squeeze(-1)
        _, *slopes = pointwise_derivatives(lambda a, b: _point_term(a, b, d), a, b)
        f_a, f_b, aa, ab, bb = (weights * x for x in slopes)
        pull = pull + torch.cat([outer_sum(f_a, rows).flatten(-2), gather(f_b, rows)], -1)
        along, across = squares @ tangents[:, : d * d], rows @ tangents[:, d * d :]
        mixed = along.mT @ (ab.unsqueeze(-1) * across)
        total = total + along.mT @ (aa.unsqueeze(-1) * along) + mixed + mixed.mT
        total = total + across.mT @ (bb.unsqueeze(-1) * across)

    def curved(at: Tensor) -> Tensor:
        mean, factor = chart(at)
        white = torch.linalg.solve_triangular(factor, mean.unsqueeze(-1), upper=False)
        log_volume = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant: Tensor = data.count * (white.square().sum((-2, -1)) / 2 + log_volume)
        return ((natural(at) * pull).sum(-1) - constant).sum()

    return -(total + _derivatives(torch.func.grad(curved), place))


def _point_term(a: Tensor, b: Tensor, dimension: int) -> Tensor:
    value: Tensor = log_chi_mgf(b / a.sqrt(), dimension) - dimension / 2 * a.log()
    return value


def _derivatives(function: Callable[[Tensor], Tensor], place: Tensor) -> Tensor:
    """Return the derivatives of (k, m) values in the p parameters of each row: (k, m, p)."""
    # Reverse mode: forward mode makes torch 2.13 warn of its own use of torch.jit.
    pulled: Any = torch.func.vjp(function, place)
    value, pull_back = pulled

    def row(unit: Tensor) -> Tensor:
        derivative: Tensor = pull_back(unit.expand_as(value))[0]
        return derivative

    units = torch.eye(value.shape[1], dtype=place.dtype, device=place.device)
    rows: Tensor = torch.func.vmap(row, out_dims=1, chunk_size=64)(units)
    return rows


def _select(data: WeightedPoints, first: int, size: int) -> WeightedPoints:
    """Return the data of the fits from `first` on, at most `size` of them."""
    points = data.points if len(data.points) == 1 else data.points[first : first + size]
    weights = data.weights[first : first + size]
    return WeightedPoints(points, weights, weights.shape[:1])


def _variances(data: WeightedPoints, chart: Chart, place: Tensor) -> tuple[Tensor, ...]:
    """Return the variances that become the fields of GaussianErrors."""
    d, k = data.dimension, len(place)
    if place.shape[1] > MAX_PARAMETERS:
        shapes = ((k, d), (k, d, d), (k,), (k,))
        return tuple(place.new_full(shape, torch.inf) for shape in shapes)
    mean, _ = chart(place)

    def outputs(at: Tensor) -> Tensor:
        mean, factor = chart(at)
        return torch.cat([mean, (factor @ factor.mT).flatten(-2)], -1)

    information = observed_information(data, chart, place)
    factor, failed = torch.linalg.cholesky_ex(information)
    is_unknown = (failed != 0).unsqueeze(-1)
    eye = torch.eye(place.shape[1], dtype=place.dtype, device=place.device)
    factor = torch.where(is_unknown.unsqueeze(-1), eye, factor)
    # J C Jᵀ = WᵀW with C the inverse of the information and W = (factor⁻¹ Jᵀ).
    spread = torch.linalg.solve_triangular(factor, _derivatives(outputs, place).mT, upper=False)
    variance = torch.where(is_unknown, torch.inf, spread.square().sum(-2))
    unit = torch.nn.functional.normalize(mean, dim=-1)
    length = (spread[..., :d] @ unit.unsqueeze(-1)).square().sum((-2, -1))
    tangent = (spread[..., :d].square().sum((-2, -1)) - length) / (d - 1)
    angle = tangent / mean.square().sum(-1)
    unknown = is_unknown.squeeze(-1)
    return (
        variance[:, :d],
        variance[:, d:].unflatten(-1, (d, d)),
        torch.where(unknown, torch.inf, length),
        torch.where(unknown, torch.inf, angle),
    )
