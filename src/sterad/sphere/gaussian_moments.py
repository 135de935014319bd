r"""Moments of the direction of a Gaussian vector, X/|X| with X ~ N(m, Σ).

With 1/|x| = π^{-1/2} ∫ s^{-1/2} exp(-s|x|²) ds and 1/|x|² = ∫ exp(-s|x|²) ds, the expectations are
Gaussian integrals for each s. In the eigenbasis of Σ, with eigenvalues λ and a = Qᵀm,

    E[exp(-s|X|²)] = Π (1 + 2sλᵢ)^{-1/2} exp(-Σ s aᵢ²/(1 + 2sλᵢ)) = w(s),
    E[X/|X|] = π^{-1/2} ∫ s^{-1/2} w(s) a/(1 + 2sλ) ds,
    E[XXᵀ/|X|²] = ∫ w(s) (diag(λ/(1 + 2sλ)) + bbᵀ) ds,   b = a/(1 + 2sλ).

In log s the integrands are analytic in a strip of half-width π: the trapezoidal rule with step 0.4
has an error of exp(-2π²/0.4) < 1e-21.
"""

import math

import torch
from torch import Tensor

from sterad.devices import to_double

STEP = 0.4
LOWER_REACH = 90.0
UPPER_REACH = 70.0
"""Range of log s beyond the scales of the law: √s and s^{-d/2} are below 1e-19 at its ends."""


@torch.no_grad()
def direction_moments(mean: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean, (*batch, d), and second moments, (*batch, d, d), of X/|X|; float64.

    mean: (*batch, d); factor: the lower Cholesky factor of Σ. Not differentiable.

    >>> center, second = direction_moments(torch.zeros(3), torch.eye(3))
    >>> bool((second - torch.eye(3).double() / 3).abs().max() < 1e-12)
    True
    """
    factor = to_double(factor)
    values, vectors = torch.linalg.eigh(factor @ factor.mT)
    a = (vectors.mT @ to_double(mean).unsqueeze(-1)).squeeze(-1)
    low = -torch.log(2 * values[..., -1] + a.square().sum(-1)) - LOWER_REACH
    high = -torch.log(2 * values[..., 0]) + UPPER_REACH
    count = math.ceil(float((high - low).max()) / STEP) + 1
    fraction = torch.linspace(0, 1, count, dtype=torch.float64, device=a.device)
    log_s = low + (high - low) * fraction.reshape(-1, *([1] * low.dim()))
    s = log_s.exp().unsqueeze(-1)
    growth = 1 + 2 * s * values
    exponent = -growth.log().sum(-1) / 2 - (s * a.square() / growth).sum(-1)
    step = (high - low) / (count - 1)
    b = a / growth
    first = step * (exponent + log_s / 2).exp() / math.sqrt(math.pi)
    second = (step * (exponent + log_s).exp()).unsqueeze(-1)
    center = (first.unsqueeze(-1) * b).sum(0)
    square = torch.diag_embed((second * values / growth).sum(0))
    square = square + torch.einsum("n...i,n...j->...ij", second * b, b)
    mean_vector: Tensor = (vectors @ center.unsqueeze(-1)).squeeze(-1)
    return mean_vector, vectors @ square @ vectors.mT
