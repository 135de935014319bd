"""Means of functions of the cosine, by quadrature, for laws without a closed form."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sterad.sphere.quadrature import log_cosh

FALL = 42.0
"""Nats below the peak at which the integrand is cut off: exp(-42) is below float64's resolution."""

Function = Callable[[Tensor], Tensor]


def expect(log_kernel: Function, function: Function, like: Tensor, dimension: int) -> Tensor:
    """Return E[function(t)] under the density exp(log_kernel(t)) relative to the uniform law.

    `like`: (*batch), float64, for shape and device; both functions take (nodes, *batch) cosines.
    In s = artanh(t) the density is g(t) sech^(d-1)(s), which has one peak; a coarse grid finds
    where it stands, a fine one integrates.

    >>> like = torch.zeros((), dtype=torch.float64)
    >>> round(expect(torch.zeros_like, torch.square, like, 4).item(), 12)
    0.25
    """
    low, high = _window(log_kernel, like.detach(), dimension)
    share = torch.linspace(0, 1, 1025, dtype=torch.float64, device=like.device)
    s = low + (high - low) * share.reshape(-1, *([1] * like.dim()))
    cosine = torch.tanh(s)
    weights = torch.softmax(log_kernel(cosine) - (dimension - 1) * log_cosh(s), dim=0)
    return (weights * function(cosine)).sum(0)


@torch.no_grad()
def _window(log_kernel: Function, like: Tensor, dimension: int) -> tuple[Tensor, Tensor]:
    """Return the stretch of s outside which the law has no mass: (*batch) each."""
    scale = (dimension - 1) ** -0.5
    x = torch.linspace(-1, 1, 2049, dtype=torch.float64, device=like.device)
    grid = scale * torch.sinh(x * math.asinh(60 / scale))
    s = grid.reshape(-1, *([1] * like.dim()))
    height = log_kernel(torch.tanh(s)) - (dimension - 1) * log_cosh(s) + torch.zeros_like(like)
    inside = height > height.amax(0) - FALL
    order = torch.arange(len(grid), device=like.device).reshape(s.shape)
    first = torch.where(inside, order, len(grid)).amin(0)
    last = torch.where(inside, order, 0).amax(0)
    return grid[(first - 1).clamp_min(0)], grid[(last + 1).clamp_max(len(grid) - 1)]
