r"""The cumulant generating function of a chi variable, the heart of the projected Gaussian.

With R chi-distributed in d dimensions, log E[exp(γR)] is needed for every d >= 2 and both signs
of γ. In s = log r the integrand is exp(d s - e^{2s}/2 + γ e^s): analytic, with one peak at
r* = √d ω, ω = exp(asinh(γ / 2√d)). With s = log r* + u its exponent is, relative to the peak,

    φ(u) = -d (e^u - 1 - u) - d ω² (e^u - 1)² / 2,

two terms of one sign: nothing cancels, and the trapezoidal rule converges geometrically.
"""

import torch
from torch import Tensor

from sterad.sphere.quadrature import log_tilted_sum, peak_nodes


def _rule(dimension: int) -> tuple[float, float, float]:
    # Chosen against 60 digits for γ in [-100, 100]; the left tail falls like exp(d u) only.
    if dimension < 8:
        return -11.0, 8.0, 0.2
    return (-9.0, 7.0, 0.3) if dimension < 64 else (-8.0, 7.0, 0.4)


def _peak(gamma: Tensor, dimension: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log integral around the peak as (log terms, radii) and asinh(γ / 2√d)."""
    nodes, log_weights = peak_nodes(*_rule(dimension), gamma.device)
    a = torch.asinh(gamma / (2 * dimension**0.5))
    square = torch.exp(2 * a).unsqueeze(-1)
    width = torch.rsqrt(dimension * (1 + square))
    u = nodes * width
    rise = torch.expm1(u)
    exponent = -dimension * ((rise - u) + square * rise.square() / 2)
    radii = (dimension * square).sqrt() * (1 + rise)
    return exponent + log_weights + width.log(), radii, a


def log_chi_mgf(gamma: Tensor, dimension: int) -> Tensor:
    """Return log E[exp(γR)], R ~ chi in `dimension` degrees; float64 in, float64 out.

    Derivatives of every order are cumulants of R under the tilted law, E[R] first.

    >>> gamma = torch.tensor([-2.0, 0.0, 2.0], dtype=torch.float64)
    >>> [round(x, 12) for x in log_chi_mgf(gamma, 3).tolist()]
    [-2.462156715648, 0.0, 4.301430681575]
    """
    still = gamma.detach()
    log_terms, radii, a = _peak(still, dimension)
    zero = torch.zeros((), dtype=torch.float64, device=gamma.device)
    at_zero = torch.logsumexp(_peak(zero, dimension)[0], dim=-1)
    height = dimension * a + dimension * torch.expm1(2 * a) / 2 - at_zero
    return height + log_tilted_sum(log_terms, radii, gamma)
