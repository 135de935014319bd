"""Tests of uniformity: whether points on the sphere have no preferred direction or axis.

K. V. Mardia and P. E. Jupp, "Directional Statistics", Wiley, 2000, sections 10.4.1 and 10.8;
M. J. Prentice, "On Invariant Tests of Uniformity for Directions and Orientations", Annals of
Statistics 6(1), 1978, https://doi.org/10.1214/aos/1176344075.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import ArrayLike, as_float_tensor, require_dimension, require_unit

MAX_DEGREE = 60
"""Degree of the spherical harmonics up to which the null distributions are expanded."""
MIN_WEIGHT = 1e-10
"""Smallest weight of a degree, relative to the largest, that is used."""
MIN_LOG_MODULUS = 20.0
"""Minus the log of the characteristic function at which its integral is cut: errors of 1e-9."""
ANGLES = 4001
"""Nodes of the trapezoidal rule over the angle."""
PAIR_NUMBERS = 2**22
"""Cosines of pairs that are computed at once: 32 MB in float64."""


@dataclass(frozen=True)
class HypothesisResult:
    """The result of a test: its statistic and the p-value, (*batch) each in float64."""

    statistic: Tensor
    p_value: Tensor


def rayleigh_test(points: ArrayLike) -> HypothesisResult:
    """Test uniformity against a preferred direction; points: (*batch, n, d) unit rows.

    S = d n R̄² has a χ² distribution with d degrees of freedom for large n. The statistic is
    (1 - 1/2n) S + S²/(2n(d + 2)), whose error is of the order 1/n². It has the largest power
    against von Mises-Fisher, and none against axial laws: see `gine_test`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> rows = torch.nn.functional.normalize(torch.randn(50, 3, generator=generator), dim=1)
    >>> bool(rayleigh_test(rows).p_value > 0.05)
    True
    """
    rows = read_points(points)
    n, d = rows.shape[-2:]
    plain = d * rows.sum(-2).square().sum(-1) / n
    statistic = (1 - 1 / (2 * n)) * plain + plain.square() / (2 * n * (d + 2))
    return HypothesisResult(statistic, chi_squared_tail(statistic, d))


def ajne_test(points: ArrayLike) -> HypothesisResult:
    """Test uniformity against laws that are not symmetric about 0; points: (*batch, n, d).

    A = n/4 - Σ_{i<j} θ_ij/(πn), with the angles θ between points; its distribution for large n is
    a sum of weighted χ² variables.
    """
    rows = read_points(points)
    return _sobolev_test(rows, lambda angle: 0.25 - angle / (2 * math.pi))


def gine_test(points: ArrayLike) -> HypothesisResult:
    """Test uniformity against any law; points: (*batch, n, d) unit rows.

    The sum of Ajne's A, for laws that are not symmetric about 0, and Giné's
    G = n/2 - (d-1)/(2n) (Γ((d-1)/2)/Γ(d/2))² Σ_{i<j} sin θ_ij, for axial ones.
    """
    rows = read_points(points)
    d = rows.shape[-1]
    ratio = math.exp(2 * (math.lgamma((d - 1) / 2) - math.lgamma(d / 2)))

    def kernel(angle: Tensor) -> Tensor:
        return 0.75 - angle / (2 * math.pi) - (d - 1) / 4 * ratio * torch.sin(angle)

    return _sobolev_test(rows, kernel)


def read_points(points: ArrayLike, least: int = 2) -> Tensor:
    """Return points as float64 unit rows after checking them: (*batch, n, d)."""
    rows = as_float_tensor("points", points).detach()
    if rows.dim() < 2 or rows.shape[-2] < least:
        raise SteradError(
            f"points have shape {tuple(rows.shape)}: give (n, d) unit rows with at least {least} "
            "rows"
        )
    require_dimension(rows.shape[-1])
    require_unit("points", rows)
    return torch.nn.functional.normalize(to_double(rows), dim=-1)


def chi_squared_tail(statistic: Tensor, df: int) -> Tensor:
    """Return the probability that a χ² variable exceeds the statistic; float64.

    >>> round(float(chi_squared_tail(torch.tensor(3.841458820694124, dtype=torch.float64), 1)), 12)
    0.05
    """
    half = statistic.clamp_min(0) / 2
    tail: Tensor = torch.special.gammaincc(torch.full_like(half, df / 2), half)
    return tail


def _sobolev_test(rows: Tensor, kernel: Callable[[Tensor], Tensor]) -> HypothesisResult:
    """Return Σ_ij kernel(θ_ij)/n and its p-value under uniformity."""
    statistic = _pair_sum(rows, kernel) / rows.shape[-2]
    weights, counts, rest = null_weights(kernel, rows.shape[-1])
    p_value = weighted_chi_squared_tail(statistic.cpu() - rest, weights, counts)
    return HypothesisResult(statistic, p_value.to(statistic.device))


def _pair_sum(rows: Tensor, kernel: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the sum over all ordered pairs, those of a point with itself included: (*batch)."""
    n = rows.shape[-2]
    size = max(1, PAIR_NUMBERS // max(1, rows.shape[:-2].numel() * n))
    total = rows.new_zeros(rows.shape[:-2])
    for first in range(0, n, size):
        cosine = (rows[..., first : first + size, :] @ rows.mT).clamp(-1, 1)
        # A cosine of 1 - 1e-16 has an angle of 1e-8, so a point's own angle is set to zero.
        own = torch.arange(first, min(first + size, n), device=rows.device)
        cosine[..., own - first, own] = 1.0
        total += kernel(torch.arccos(cosine)).sum((-2, -1))
    return total


def null_weights(
    kernel: Callable[[Tensor], Tensor], dimension: int
) -> tuple[Tensor, Tensor, float]:
    """Return the weights and degrees of freedom of the null distribution, and what is left over.

    The weight of the harmonics of degree k is the mean of kernel · P_k over the sphere (the formula
    of Funk and Hecke), with the Legendre polynomials of the dimension and P_k(1) = 1. The other
    harmonics, of higher degree or tiny weight, add their mean: their variance is negligible.
    """
    angle = torch.linspace(0, math.pi, ANGLES, dtype=torch.float64, device="cpu")
    density = torch.sin(angle).clamp_min(0).pow(dimension - 2)
    ends = torch.ones_like(angle)
    ends[[0, -1]] = 0.5
    density = density * ends / (density * ends).sum()
    values = kernel(angle) * density
    cosine = torch.cos(angle)
    before, current, weights = torch.ones_like(cosine), cosine, []
    for k in range(1, MAX_DEGREE + 1):
        weights.append(float((values * current).sum()))
        following = (2 * k + dimension - 2) * cosine * current - k * before
        before, current = current, following / (k + dimension - 2)
    # Smaller weights are rounding errors, and the numbers of harmonics would multiply them.
    degrees = [k for k, weight in enumerate(weights, 1) if weight > MIN_WEIGHT * max(weights)]
    found = torch.tensor([weights[k - 1] for k in degrees], dtype=torch.float64, device="cpu")
    log_counts = [_log_harmonics(k, dimension) for k in degrees]
    counts = torch.tensor(log_counts, dtype=torch.float64, device="cpu").exp()
    # The mean of the statistic under uniformity is kernel(0) minus the mean of the kernel.
    mean = float(kernel(angle[:1])[0] - values.sum())
    return found, counts, max(0.0, mean - float((found * counts).sum()))


def _log_harmonics(degree: int, dimension: int) -> float:
    """Return the log of the number of independent spherical harmonics of a degree."""
    if dimension == 2:
        return math.log(2)
    log_binomial = math.lgamma(degree + dimension - 2) - math.lgamma(degree + 1)
    log_binomial -= math.lgamma(dimension - 1)
    return math.log(2 * degree + dimension - 2) + log_binomial


def weighted_chi_squared_tail(value: Tensor, weights: Tensor, counts: Tensor) -> Tensor:
    """Return the probability that Σ weights · χ²_counts exceeds `value`, of any shape; float64.

    J. P. Imhof, "Computing the Distribution of Quadratic Forms in Normal Variables", Biometrika
    48(3/4), 1961, https://doi.org/10.1093/biomet/48.3-4.419, by the midpoint rule.

    >>> one = torch.ones(1, dtype=torch.float64)
    >>> round(float(weighted_chi_squared_tail(9.487729036781154 * one, one, 4 * one)), 8)
    0.05
    """
    mean, scale = float((weights * counts).sum()), float((weights.square() * counts).sum().sqrt())
    # A step of h repeats the distribution with a period of 4π/h, which must hold all of it.
    step = 2 * math.pi / (max(float(value.abs().max()), mean) + 40 * scale)
    u = (
        torch.arange(_node_count(step, weights, counts), dtype=torch.float64, device="cpu") + 0.5
    ) * step
    phase = (counts * torch.arctan(u.unsqueeze(-1) * weights)).sum(-1) / 2
    factor = torch.exp(-_log_modulus(u, weights, counts)) / u
    tails = [
        0.5 + float((torch.sin(phase - float(one) * u / 2) * factor).sum()) * step / math.pi
        for one in value.flatten()
    ]
    return torch.tensor(tails, dtype=torch.float64, device="cpu").clamp(0, 1).reshape(value.shape)


def _node_count(step: float, weights: Tensor, counts: Tensor) -> int:
    """Return how many steps reach the point where the integrand is negligible."""
    nodes = 64
    while nodes < 2**20:
        last = torch.tensor([nodes * step], dtype=torch.float64, device="cpu")
        if float(_log_modulus(last, weights, counts)) > MIN_LOG_MODULUS:
            break
        nodes *= 2
    return nodes


def _log_modulus(u: Tensor, weights: Tensor, counts: Tensor) -> Tensor:
    """Return minus the log of the modulus of the characteristic function at u/2."""
    return (counts * torch.log1p((u.unsqueeze(-1) * weights).square())).sum(-1) / 4
