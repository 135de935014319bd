r"""Moments of the direction of a Gaussian vector, X/|X| with X ~ N(m, Σ).

With 1/|x| = π^{-1/2} ∫ s^{-1/2} exp(-s|x|²) ds and 1/|x|² = ∫ exp(-s|x|²) ds, the expectations are
Gaussian integrals for each s. In the eigenbasis of Σ, with eigenvalues λ and a = Qᵀm,

    E[exp(-s|X|²)] = Π (1 + 2sλᵢ)^{-1/2} exp(-Σ s aᵢ²/(1 + 2sλᵢ)) = w(s),
    E[X/|X|] = π^{-1/2} ∫ s^{-1/2} w(s) a/(1 + 2sλ) ds,
    E[XXᵀ/|X|²] = ∫ w(s) (diag(λ/(1 + 2sλ)) + bbᵀ) ds,   b = a/(1 + 2sλ).

With log x = ∫ (exp(-s) - exp(-sx))/s ds, E[log |X|²] is an integral of the same w(s).

In log s the integrands are analytic in a strip of half-width π: the trapezoidal rule with step 0.4
has an error of exp(-2π²/0.4) < 1e-21. exp(-s) is bounded in half of that strip: the step is 0.2.
"""

import math

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.sphere.angular_gaussian import AngularGaussian

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
    s, step, a, values, vectors = _spectral_nodes(mean, factor, STEP)
    growth = 1 + 2 * s.unsqueeze(-1) * values
    exponent = _log_laplace(s, a, values)
    b = a / growth
    first = step * (exponent + s.log() / 2).exp() / math.sqrt(math.pi)
    center = (first.unsqueeze(-1) * b).sum(0)
    square = _second_moments(step * (exponent + s.log()).exp(), b, values / growth)
    mean_vector: Tensor = (vectors @ center.unsqueeze(-1)).squeeze(-1)
    return mean_vector, vectors @ square @ vectors.mT


def mean_log_square(mean: Tensor, factor: Tensor) -> Tensor:
    """Return E[log |X|²] for X ~ N(mean, factor factorᵀ), differentiable once: (*batch) float64.

    factor: (*batch, d, d), any matrix of full rank.

    >>> value = mean_log_square(torch.zeros(2), torch.eye(2))  # log 2 minus Euler's constant
    >>> round(value.item(), 12)
    0.115931515658
    """
    mean, factor = to_double(mean), to_double(factor)
    value, slope, spread = _log_square_and_slopes(mean.detach(), factor.detach())
    # Zero in value; these terms only add the derivatives.
    change = (slope * (mean - mean.detach())).sum(-1)
    return value + change + (spread * (factor - factor.detach())).sum((-2, -1))


@torch.no_grad()
def _log_square_and_slopes(mean: Tensor, factor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return E[log |X|²] and its derivatives in mean and factor.

    For X = m + Lz they are 2 E[X/|X|²] and 2 E[Xzᵀ/|X|²], where z = L⁻¹(X - m).
    """
    s, step, a, values, vectors = _spectral_nodes(mean, factor, STEP / 2)
    scale = values.sum(-1) + a.square().sum(-1)
    exponent = _log_laplace(s, a, values)
    value = scale.log() + (step * (torch.exp(-s * scale) - exponent.exp())).sum(0)
    growth = 1 + 2 * s.unsqueeze(-1) * values
    density, b = step * (exponent + s.log()).exp(), a / growth
    slope = (vectors @ (density.unsqueeze(-1) * b).sum(0).unsqueeze(-1)).squeeze(-1)
    second = vectors @ _second_moments(density, b, values / growth) @ vectors.mT
    covariance = second - slope.unsqueeze(-1) * mean.unsqueeze(-2)
    return value, 2 * slope, 2 * torch.linalg.solve(factor, covariance.mT).mT


def _spectral_nodes(mean: Tensor, factor: Tensor, size: float) -> tuple[Tensor, ...]:
    """Return nodes s, (n, *batch), their step in log s, Qᵀm, and eigenvalues λ and vectors Q."""
    factor = to_double(factor)
    values, vectors = torch.linalg.eigh(factor @ factor.mT)
    a = (vectors.mT @ to_double(mean).unsqueeze(-1)).squeeze(-1)
    low = -torch.log(2 * values[..., -1] + a.square().sum(-1)) - LOWER_REACH
    high = -torch.log(2 * values[..., 0]) + UPPER_REACH
    count = math.ceil(float((high - low).max()) / size) + 1
    fraction = torch.linspace(0, 1, count, dtype=torch.float64, device=a.device)
    log_s = low + (high - low) * fraction.reshape(-1, *([1] * low.dim()))
    return log_s.exp(), (high - low) / (count - 1), a, values, vectors


def _log_laplace(s: Tensor, a: Tensor, values: Tensor) -> Tensor:
    """Return log E[exp(-s|X|²)]."""
    growth = 1 + 2 * s.unsqueeze(-1) * values
    return -growth.log().sum(-1) / 2 - (s.unsqueeze(-1) * a.square() / growth).sum(-1)


def _second_moments(weights: Tensor, b: Tensor, spread: Tensor) -> Tensor:
    """Return the sum over the nodes of weights (diag(spread) + bbᵀ), in the eigenbasis."""
    square = torch.diag_embed((weights.unsqueeze(-1) * spread).sum(0))
    return square + torch.einsum("n...i,n...j->...ij", weights.unsqueeze(-1) * b, b)


def whiten(mean: Tensor, factor: Tensor) -> AngularGaussian:
    """Return the law of the direction of L⁻¹X for X ~ N(mean, LLᵀ)."""
    center = torch.linalg.solve_triangular(
        to_double(factor), to_double(mean).unsqueeze(-1), upper=False
    ).squeeze(-1)
    axis = torch.zeros_like(center)
    axis[..., 0] = 1
    square = center.square().sum(-1)
    is_central = square < 1e-200
    # A central vector has no direction, and the derivative of its length is undefined.
    length = torch.where(is_central, 0.0, torch.where(is_central, 1.0, square).sqrt())
    pole = torch.where(
        is_central.unsqueeze(-1), axis, torch.nn.functional.normalize(center, dim=-1)
    )
    return AngularGaussian(pole, length, validate_args=False)


def direction_entropy(mean: Tensor, factor: Tensor) -> Tensor:
    """Return the entropy of X/|X| with respect to area, X ~ N(mean, LLᵀ): (*batch) float64.

    The direction of L⁻¹X is an angular Gaussian; the map between the spheres adds
    log |L| + (d/2) (E[log |L⁻¹X|²] - E[log |X|²]) to its entropy.

    >>> entropy = direction_entropy(torch.zeros(3), torch.eye(3))  # log 4π
    >>> round(entropy.item(), 12)
    2.531024246969
    """
    factor, white = to_double(factor), whiten(mean, factor)
    center = white.mean_direction * white.concentration.unsqueeze(-1)
    eye = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device).expand_as(factor)
    log_volume = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    stretch = mean_log_square(center, eye) - mean_log_square(mean, factor)
    return white.entropy() + log_volume + factor.shape[-1] / 2 * stretch
