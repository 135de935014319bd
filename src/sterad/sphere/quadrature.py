"""The trapezoidal rule in a sinh-stretched variable: one peak, long tails, few nodes."""

import math

import torch
from torch import Tensor

STRETCH = 3.0
"""Beyond three standard deviations the nodes spread exponentially, so that tails cost little."""


def peak_nodes(low: float, high: float, step: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return nodes in standard deviations from the peak and the logarithms of their weights.

    >>> nodes, log_weights = peak_nodes(-8.0, 8.0, 0.2, torch.device("cpu"))
    >>> bool(abs((log_weights - nodes**2 / 2).exp().sum() - (2 * torch.pi) ** 0.5) < 1e-14)
    True
    """
    first, last = round(low / step), round(high / step)
    order = torch.arange(first, last + 1, dtype=torch.float64, device=device)
    x = order * (step / STRETCH)
    return STRETCH * torch.sinh(x), torch.log(step * torch.cosh(x))


def log_cosh(s: Tensor) -> Tensor:
    """Return log cosh without overflow.

    >>> log_cosh(torch.tensor([0.0, 1000.0]))
    tensor([  0.0000, 999.3068])
    """
    return s.abs() + torch.log1p(torch.exp(-2 * s.abs())) - math.log(2)


def log_tilted_sum(log_terms: Tensor, statistic: Tensor, parameter: Tensor) -> Tensor:
    """Return log sum exp(log_terms) with the derivatives of an exponential family in `parameter`.

    `log_terms` hold the integrand at the present parameter, without a graph, in whatever form
    is free of cancellation; the tilt is zero in value, and its derivatives of every order are the
    cumulants of `statistic` under the normalized terms. Shapes: (..., nodes), (..., nodes), (...).
    """
    tilt = (parameter - parameter.detach()).unsqueeze(-1)
    return torch.logsumexp(log_terms.detach() + tilt * statistic.detach(), dim=-1)
