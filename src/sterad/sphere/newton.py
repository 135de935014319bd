"""Newton's method for the mean direction and the concentration of any law of the cosine.

The log-likelihood is Σ wᵢ log g(xᵢᵀμ; κ). Its derivatives come from the law's own log kernel; the
Newton equations in the tangent space of μ and in κ are solved by conjugate gradients, so that no
d × d matrix is formed. All fits of a batch advance together.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sterad.sphere.maximum_likelihood import (
    MAX_KAPPA,
    MIN_VARIANCE,
    Maximum,
    approximate_kappa,
    split_resultant,
)
from sterad.sphere.quadrature import pointwise_derivatives
from sterad.sphere.weighted_points import WeightedPoints, gather, project

if TYPE_CHECKING:
    from sterad.sphere.law import SphericalLaw

Law = TypeVar("Law", bound="SphericalLaw")
LogKernel = Callable[[Tensor, Tensor], Tensor]

MAX_STEPS = 200
MAX_SOLVER_STEPS = 60
MAX_VARIANCE = 1e12
"""Variance above which a concentration counts as zero."""
TOLERANCE = 1e-12
"""Newton decrement, in squared standard errors, below which one more step ends the iteration."""
MAX_GROWTH = 10.0
"""Largest factor by which a step changes the concentration."""
KERNEL_CHUNK = 1 << 13
"""Cosines whose log kernel is differentiated at once: a quadrature has up to 400 nodes for each."""


@dataclass(frozen=True)
class _Likelihood:
    """The log-likelihood of k fits and its derivatives at one place; sums are over the points."""

    value: Tensor
    slope: Tensor
    """In the tangent directions, and last in κ: (k, d + 1)."""
    pull: Tensor
    """Σ w ∂ₜ t: (k,), the curvature due to the sphere."""
    second: Tensor
    """w ∂ₜₜ of each point: (k, n)."""
    mixed: Tensor
    """w ∂ₜκ of each point: (k, n)."""
    second_kappa: Tensor
    direction: Tensor
    curvature: Tensor
    """Mean of minus the second derivatives over the tangent directions: (k,)."""
    data: WeightedPoints

    def hold(self, is_held: Tensor) -> Self:
        """Return the same with the concentration kept where `is_held`: (k,)."""
        slope = self.slope.clone()
        slope[:, -1] = torch.where(is_held, 0.0, slope[:, -1])
        return replace(
            self,
            slope=slope,
            mixed=torch.where(is_held.unsqueeze(-1), 0.0, self.mixed),
            second_kappa=torch.where(is_held, -1.0, self.second_kappa),
        )

    def apply(self, vector: Tensor) -> Tensor:
        """Return minus the matrix of second derivatives times a vector: (k, d + 1)."""
        kappa = vector[:, -1]
        normal = _dot(vector[:, :-1], self.direction).unsqueeze(-1) * self.direction
        tangent = vector[:, :-1] - normal
        along = -self.pull.unsqueeze(-1) * tangent
        across = torch.zeros_like(kappa)
        first = 0
        for rows, weights in self.data.chunks():
            part = slice(first, first + weights.shape[1])
            first = part.stop
            shadow = project(rows, tangent)
            second, mixed = self.second[:, part], self.mixed[:, part]
            along = along + gather(second * shadow + mixed * kappa.unsqueeze(-1), rows)
            across = across + (mixed * shadow).sum(-1)
        # The normal component of a vector is a rounding error: any positive factor lets it shrink.
        along = _tangent(along, self.direction) - self.curvature.abs().unsqueeze(-1) * normal
        across = across + self.second_kappa * kappa
        return -torch.cat([along, across.unsqueeze(-1)], -1)

    def precondition(self, vector: Tensor) -> Tensor:
        """Return a vector divided by the mean curvatures, of the direction and of κ."""
        tangent = torch.where(self.curvature > 0, self.curvature, self.pull.abs() + 1e-300)
        kappa = torch.where(self.second_kappa < 0, -self.second_kappa, 1.0)
        return torch.cat([vector[:, :-1] / tangent[:, None], vector[:, -1:] / kappa[:, None]], -1)

    def solve(self, target: Tensor) -> Tensor:
        """Return x with apply(x) = target by preconditioned conjugate gradients: (k, d + 1).

        A fit with a direction of negative curvature keeps the x found before.
        """
        x = torch.zeros_like(target)
        residual, reduced = target, self.precondition(target)
        step, energy = reduced, _dot(target, reduced)
        first_energy, is_active = energy, energy > 0
        for _ in range(min(MAX_SOLVER_STEPS, target.shape[-1])):
            image = self.apply(step)
            bend = _dot(step, image)
            is_active = is_active & (bend > 0) & (energy > 1e-24 * first_energy)
            if not bool(is_active.any()):
                break
            length = torch.where(is_active, energy / torch.where(bend > 0, bend, 1.0), 0.0)
            x = x + length[:, None] * step
            residual = residual - length[:, None] * image
            reduced = self.precondition(residual)
            new_energy = _dot(residual, reduced)
            ratio = torch.where(is_active, new_energy / torch.where(is_active, energy, 1.0), 0.0)
            step, energy = reduced + ratio[:, None] * step, new_energy
        return torch.where((x != 0).any(-1, keepdim=True), x, self.precondition(target))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1)


def _tangent(vector: Tensor, direction: Tensor) -> Tensor:
    return vector - _dot(vector, direction).unsqueeze(-1) * direction


def _derivatives(log_kernel: LogKernel, cosine: Tensor, kappa: Tensor) -> tuple[Tensor, ...]:
    """Return log g and its derivatives t, κ, tt, tκ, κκ at each cosine: (k, n) each."""
    return pointwise_derivatives(log_kernel, cosine, kappa.unsqueeze(-1).expand_as(cosine))


def _split(cosine: Tensor) -> list[Tensor]:
    return list(cosine.split(max(1, KERNEL_CHUNK // len(cosine)), 1))


def _evaluate(
    log_kernel: LogKernel, data: WeightedPoints, direction: Tensor, kappa: Tensor
) -> _Likelihood:
    """Return the log-likelihood with its derivatives."""
    pieces, pulls = [], torch.zeros_like(direction)
    for rows, weights in data.chunks():
        cosine = project(rows, direction).clamp(-1, 1)
        parts = [_derivatives(log_kernel, t, kappa) for t in _split(cosine)]
        weighted = torch.stack([torch.cat(column, 1) for column in zip(*parts, strict=True)])
        weighted = weighted * weights
        pulls = pulls + gather(weighted[1], rows)
        spread = weighted[3] * (1 - cosine) * (1 + cosine)
        sums = torch.stack([weighted[0], weighted[2], weighted[5], weighted[1] * cosine, spread])
        pieces.append((sums.sum(-1), weighted[3], weighted[4]))
    value, slope_kappa, second_kappa, pull, spread = torch.stack([p[0] for p in pieces]).sum(0)
    return _Likelihood(
        value=value,
        slope=torch.cat([_tangent(pulls, direction), slope_kappa.unsqueeze(-1)], -1),
        pull=pull,
        second=torch.cat([p[1] for p in pieces], 1),
        mixed=torch.cat([p[2] for p in pieces], 1),
        second_kappa=second_kappa,
        direction=direction,
        curvature=pull - spread / (direction.shape[-1] - 1),
        data=data,
    )


@torch.no_grad()
def _value(log_kernel: LogKernel, data: WeightedPoints, direction: Tensor, kappa: Tensor) -> Tensor:
    """Return the log-likelihood relative to the uniform law: (k,)."""
    total = torch.zeros_like(kappa)
    for rows, weights in data.chunks():
        cosine = project(rows, direction).clamp(-1, 1)
        values = [log_kernel(t, kappa.unsqueeze(-1).expand_as(t)) for t in _split(cosine)]
        total = total + (torch.cat(values, 1) * weights).sum(-1)
    return total


def _interpolated_concentration(law: "type[SphericalLaw]", variance: Tensor) -> Tensor:
    """Return `law.concentration_of` each variance, by interpolation in logarithms."""
    grid = [math.log(MIN_VARIANCE) + 0.5 * i for i in range(93)]
    values = [math.log(law.concentration_of(math.exp(x))) for x in grid]
    height = torch.tensor(values, dtype=torch.float64, device=variance.device)
    place = ((variance.log() - grid[0]) / 0.5).clamp(0, len(grid) - 1.001)
    index = place.long()
    return torch.lerp(height[index], height[index + 1], place - index).exp()


def _search(
    log_kernel: LogKernel,
    place: tuple[Tensor, Tensor],
    step: Tensor,
    likelihood: _Likelihood,
    bounds: tuple[float, float],
) -> tuple[Tensor, Tensor]:
    """Return the place after the longest of the steps 1, 1/2, 1/4, ... that does not go down."""
    direction, kappa = place
    size = torch.ones_like(kappa)
    slack = 1e-12 * (likelihood.value.abs() + 1)
    is_small = _dot(likelihood.slope, step).abs() < 1e-6
    for _ in range(40):
        moved = normalize(direction + size[:, None] * step[:, :-1], dim=-1)
        grown = (kappa + size * step[:, -1]).clamp(*bounds)
        grown = torch.minimum(torch.maximum(grown, kappa / MAX_GROWTH), kappa * MAX_GROWTH)
        value = _value(log_kernel, likelihood.data, moved, grown)
        is_lower = ~(value >= likelihood.value - slack) & ~is_small
        if not bool(is_lower.any()):
            break
        size = torch.where(is_lower, size / 2, size)
    return moved, grown


@torch.no_grad()
def maximize(law: "type[SphericalLaw]", data: WeightedPoints, **shape: float) -> Maximum:
    """Return the maximum of the likelihood of each fit, from the resultant of its points."""

    def log_kernel(cosine: Tensor, kappa: Tensor) -> Tensor:
        return cast(Tensor, cast(Any, law).log_kernel_at(cosine, kappa, data.dimension, **shape))

    direction, length = split_resultant(data.resultant(), data.count)
    start = approximate_kappa(length, data.dimension)
    bounds = law.concentration_of(MAX_VARIANCE), law.concentration_of(MIN_VARIANCE)
    kappa = _interpolated_concentration(law, 1 / start.clamp_min(1 / MAX_VARIANCE)).clamp(*bounds)
    kappa = torch.where(length == 0, bounds[0], kappa)
    is_fixed = (length == 0) | (start >= MAX_KAPPA)
    converged = is_fixed
    for _ in range(MAX_STEPS):
        likelihood = _evaluate(log_kernel, data, direction, kappa)
        held = likelihood.hold(_is_held(likelihood, kappa, bounds) | is_fixed)
        step = torch.where(converged[:, None], 0.0, held.solve(held.slope))
        is_last = _dot(held.slope, step) <= TOLERANCE
        direction, kappa = _search(log_kernel, (direction, kappa), step, held, bounds)
        converged = converged | is_last
        if bool(converged.all()):
            break
    likelihood = _evaluate(log_kernel, data, direction, kappa)
    return _as_maximum(likelihood, kappa, bounds, is_fixed, converged)


def _is_held(likelihood: _Likelihood, kappa: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Return where the concentration is at a bound and would leave it."""
    slope = likelihood.slope[:, -1]
    return ((kappa <= bounds[0]) & (slope <= 0)) | ((kappa >= bounds[1]) & (slope >= 0))


def _as_maximum(
    likelihood: _Likelihood,
    kappa: Tensor,
    bounds: tuple[float, float],
    is_fixed: Tensor,
    converged: Tensor,
) -> Maximum:
    at_limit = is_fixed | _is_held(likelihood, kappa, bounds)
    unit = torch.zeros_like(likelihood.slope)
    unit[:, -1] = 1
    variance = likelihood.solve(unit)[:, -1]
    is_zero = at_limit & (kappa <= bounds[0])
    # At concentration 0 the direction has no influence.
    information = torch.where(is_zero, -likelihood.second_kappa, 1 / variance)
    return Maximum(
        direction=likelihood.direction,
        concentration=torch.where(is_zero, 0.0, kappa),
        log_likelihood=torch.where(is_zero, 0.0, likelihood.value),
        information=information,
        curvature=torch.where(is_zero, 0.0, likelihood.curvature),
        at_limit=at_limit,
        converged=converged,
    )
