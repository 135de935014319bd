r"""The cosine of a Gaussian vector X ~ N(m, Σ) with an axis, in any dimension.

Let b be the component of X along the axis and y the n = d - 1 others, given b independent with
means aᵢ, linear in b, and variances λᵢ. For Y = |y|² and g = 1/2λ - 1/2 max λ, with qᵢ = aᵢ²/4λᵢ²,

    K(ζ) = log E[exp(zY) | b] = Σ (-log(2λᵢ(ζ + gᵢ))/2 + qᵢ/(ζ + gᵢ) - 2λᵢqᵢ),  ζ = 1/2 max λ - z,

and the density of Y is the integral of exp(K - zY)/2πi over a contour that leaves the
singularities, ζ ≤ 0, on one side. It crosses the real axis at the saddle point η and follows the
path of steepest descent to third order, v ↦ ζ = η - iv - (K'''/6K'')v². Nothing oscillates there,
and the trapezoidal rule converges exponentially. With s the artanh of the cosine, b = √Y sinh s;
in s and log √Y the joint density is analytic, and the trapezoidal rule is used again. Its sum of
probabilities tells whether the steps are short enough.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.quadrature import Function, log_cosh

FIRST_NODES = 33
GROWTH = 1.6
MAX_NODES = 1000
"""Nodes of s in the first and in the last of the refinements."""
MIN_RADII = 28
RADII_PER_UNIT = 4.5
"""Nodes of log √Y in the first of the refinements."""
TOLERANCE = 1e-9
"""Largest accepted error of the sum of probabilities."""
HALF_TOLERANCE = 1e-5
"""Largest accepted change by twice the steps: the convergence is exponential, so that the error is
of the order of its square."""
MIN_WEIGHT = 1e-8
"""Weight in a sum below which the accepted error no longer grows."""
CONTOUR_STEP = 0.3
CONTOUR_REACH = 9.0
"""Nodes of the contour in standard deviations 1/√K''."""
CUTOFF_NATS = 26.0
NORMAL_REACH = 7.0
"""Ranges beyond which there is no mass to this accuracy: exp(-26) and exp(-7²/2)."""
NEWTON_STEPS = 9
"""The contour may cross the real axis beside the saddle point: no exact root is needed."""
CHUNK_NUMBERS = 1 << 20
"""Complex numbers that are held at once: 16 MB."""


@dataclass(frozen=True)
class _Split:
    """A Gaussian vector as b ~ N(center, spread²) and y given b."""

    center: float
    spread: float
    alpha: Tensor
    beta: Tensor
    """The means of y are alpha + beta b: (n,) each."""
    values: Tensor
    """The variances λ of y: (n,)."""

    @property
    def gap(self) -> Tensor:
        return 0.5 / self.values - 0.5 / self.values.max()

    def squares(self, b: Tensor) -> Tensor:
        """Return q: (*b, n)."""
        mean = self.alpha + self.beta * b.unsqueeze(-1)
        return (mean / (2 * self.values)).square()


@torch.no_grad()
def cosine_mean(
    mean: Tensor, covariance: Tensor, axis: Tensor, function: Function, weight: float = 1.0
) -> Tensor:
    """Return E[function(t)] for the cosine t of N(mean, covariance) with `axis`: ().

    mean: (d,), d > 3; covariance: (d, d); axis: (d,), of unit length; all float64. weight: that of
    the mean in a sum; the smaller, the larger the accepted error.

    >>> axis = torch.eye(5, dtype=torch.float64)[0]
    >>> round(float(cosine_mean(0 * axis, torch.eye(5).double(), axis, torch.square)), 9)  # 1/5
    0.2
    """
    split = _split(mean, covariance, axis)
    low, high = _log_radius_range(split, *_marginal(mean, covariance, axis))
    slack = max(abs(weight), MIN_WEIGHT) ** -0.5
    count = FIRST_NODES
    while count <= MAX_NODES:
        s, weights, coarse = _distribution(split, low, high, count)
        values, total = function(torch.tanh(s)), weights.sum()
        result: Tensor = (weights * values).sum() / total
        change = float(((coarse * values[::2]).sum() / coarse.sum() - result).abs())
        is_normalized = abs(float(total) - 1) <= TOLERANCE * slack
        if is_normalized and change <= HALF_TOLERANCE * slack**0.5:
            return result
        count = 2 * math.ceil(count * GROWTH / 2) + 1
    raise SteradError(
        f"the mean of a function of a cosine has not converged (the probabilities add up to "
        f"{float(total):.10g}): the law is too narrow or its variances are too different; "
        "estimate the divergence as the mean of p.log_prob(x) - q.log_prob(x) over samples x of p"
    )


def _tangent(axis: Tensor) -> Tensor:
    """Return an orthonormal basis of the vectors orthogonal to the axis: (d, d - 1)."""
    mirror = axis.clone()
    mirror[0] += 1.0 if float(axis[0]) >= 0 else -1.0
    eye = torch.eye(len(axis), dtype=axis.dtype, device=axis.device)
    return (eye - 2 * torch.outer(mirror, mirror) / mirror.square().sum())[:, 1:]


def _marginal(mean: Tensor, covariance: Tensor, axis: Tensor) -> tuple[Tensor, Tensor]:
    """Return variances λ of y and its means in their eigenbasis, whatever b."""
    tangent = _tangent(axis)
    values, vectors = torch.linalg.eigh(tangent.mT @ covariance @ tangent)
    return values, vectors.mT @ (tangent.mT @ mean)


def _split(mean: Tensor, covariance: Tensor, axis: Tensor) -> _Split:
    tangent = _tangent(axis)
    center, variance = axis @ mean, axis @ covariance @ axis
    slope = tangent.mT @ (covariance @ axis) / variance
    rest = tangent.mT @ covariance @ tangent - variance * torch.outer(slope, slope)
    values, vectors = torch.linalg.eigh(rest)
    alpha = vectors.mT @ (tangent.mT @ mean - slope * center)
    return _Split(float(center), float(variance.sqrt()), alpha, vectors.mT @ slope, values)


def _log_radius_range(split: _Split, values: Tensor, mean: Tensor) -> tuple[float, float]:
    """Return the range of log √Y that holds the mass, by the saddle point approximation."""
    marginal = _Split(0.0, 1.0, mean, torch.zeros_like(mean), values)
    # ζ = exp(θ)/2 max λ; θ = 0 is the mean of Y.
    theta = torch.linspace(-8, 72, 2001, dtype=torch.float64, device=values.device)
    eta = theta.exp() * 0.5 / values.max()
    square = marginal.squares(torch.zeros_like(eta))
    first, second, _ = _cumulants(eta, square, marginal.gap)
    height = _exponent(eta, square, marginal, first) - second.log() / 2 + first.log()
    inside = (height > height.max() - CUTOFF_NATS).nonzero()
    below, above = max(0, int(inside.min()) - 1), min(len(theta) - 1, int(inside.max()) + 1)
    return float(first[above].log()) / 2, float(first[below].log()) / 2


def _cumulants(eta: Tensor, square: Tensor, gap: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first three derivatives of K with respect to z at real ζ = η: (*eta) each."""
    inverse = 1 / (eta.unsqueeze(-1) + gap)
    first = (inverse * (0.5 + square * inverse)).sum(-1)
    second = (inverse.square() * (0.5 + 2 * square * inverse)).sum(-1)
    third = (inverse.pow(3) * (1 + 6 * square * inverse)).sum(-1)
    return first, second, third


def _exponent(eta: Tensor, square: Tensor, split: _Split, y: Tensor) -> Tensor:
    """Return K - zY at real ζ = η: (*eta)."""
    shifted = eta.unsqueeze(-1) + split.gap
    terms = -torch.log(2 * split.values * shifted) / 2 + square / shifted
    terms = terms - 2 * split.values * square
    return terms.sum(-1) - (0.5 / split.values.max() - eta) * y


def _saddle(y: Tensor, square: Tensor, gap: Tensor) -> Tensor:
    """Return η with K' = Y nearly, by Newton's method in logarithms with a bracket: (*y)."""
    half = gap.shape[0] / 2
    # Without the gaps K' is larger, and with one term of the sum alone it is smaller.
    high = (half + torch.sqrt(half**2 + 4 * square.sum(-1) * y)) / (2 * y)
    low, eta = 0.5 / y, high
    for _ in range(NEWTON_STEPS):
        first, second, _ = _cumulants(eta, square, gap)
        is_low = first > y
        low, high = torch.where(is_low, eta, low), torch.where(is_low, high, eta)
        new = eta * torch.exp((first / y).log() * first / (eta * second))
        eta = torch.where((new >= low) & (new <= high), new, (low * high).sqrt())
    return eta


def _log_density(split: _Split, y: Tensor, b: Tensor) -> Tensor:
    """Return the logarithm of the density of Y given b at y: (m,) each."""
    square, gap = split.squares(b), split.gap
    eta = _saddle(y, square, gap)
    _, second, third = _cumulants(eta, square, gap)
    count = round(CONTOUR_REACH / CONTOUR_STEP) + 1
    x = torch.arange(count, dtype=torch.float64, device=y.device) * CONTOUR_STEP
    v = x / second.sqrt().unsqueeze(-1)
    bend = (third / (6 * second)).unsqueeze(-1)
    shift = torch.complex(-bend * v.square(), -v)
    near = (eta.unsqueeze(-1) + gap).unsqueeze(1)
    ratio = shift.unsqueeze(-1) / near
    terms = -torch.log1p(ratio) / 2 - (square.unsqueeze(1) / near) * (ratio / (1 + ratio))
    change = terms.sum(-1) + shift * y.unsqueeze(-1)
    integrand = (change.exp() * torch.complex(torch.ones_like(v), -2 * bend * v)).real
    total = CONTOUR_STEP * (integrand.sum(-1) - integrand[:, 0] / 2)
    # Rounding may leave a tiny negative number where the density is negligible.
    total = total.clamp_min(1e-300) / (math.pi * second.sqrt())
    return _exponent(eta, square, split, y) + total.log()


def _distribution(split: _Split, low: float, high: float, count: int) -> tuple[Tensor, ...]:
    """Return `count` nodes of s and their probabilities, and those by half of all nodes."""
    reach = NORMAL_REACH * split.spread
    first, last = split.center - reach, split.center + reach
    like = split.values
    start = math.asinh(first * math.exp(-(high if first > 0 else low)))
    stop = math.asinh(last * math.exp(-(low if last > 0 else high)))
    s = start + (stop - start) * _unit_interval(count, like)
    # Beyond these radii b = exp(l) sinh s is outside [first, last]; s = 0 counts as positive.
    slope = torch.where(s.abs() < 1e-100, 1e-100, torch.sinh(s))
    farthest = torch.where(s >= 0, last, first) / slope
    nearest = torch.where(s >= 0, first, last) / slope
    upper = torch.where(farthest > 0, farthest.log(), math.inf).clamp_max(high)
    lower = torch.where(nearest > 0, nearest.log(), -math.inf).clamp_min(low)
    width = (upper - lower).clamp_min(0)
    # In log √Y the strip of analyticity is wide, whatever the covariance.
    least = max(MIN_RADII, RADII_PER_UNIT * (high - low))
    radii = 2 * math.ceil(least / 2 * (count / FIRST_NODES) ** 0.35) + 1
    radius = lower.unsqueeze(-1) + width.unsqueeze(-1) * _unit_interval(radii, like)
    b = radius.exp() * torch.sinh(s).unsqueeze(-1)
    own = -((b - split.center) / split.spread).square() / 2 + 3 * radius
    own = own + log_cosh(s).unsqueeze(-1) + math.log(2 / (split.spread * math.sqrt(2 * math.pi)))
    rows = max(1, CHUNK_NUMBERS // (len(like) * round(CONTOUR_REACH / CONTOUR_STEP)))
    parts = zip((2 * radius).exp().flatten().split(rows), b.flatten().split(rows), strict=True)
    given = torch.cat([_log_density(split, y, at) for y, at in parts]).reshape(own.shape)
    density = (
        (own + given).exp() * width.unsqueeze(-1) * ((stop - start) / (count - 1) / (radii - 1))
    )
    return s, density.sum(-1), 4 * density[::2, ::2].sum(-1)


def _unit_interval(count: int, like: Tensor) -> Tensor:
    return torch.linspace(0, 1, count, dtype=like.dtype, device=like.device)
