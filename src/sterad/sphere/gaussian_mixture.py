r"""Laws of the cosine as mixtures of directions of Gaussian vectors with the same axis.

For an expectation over the whole sphere, a law about the axis μ is written as Σ wⱼ pⱼ, where pⱼ is
the law of the direction of N(kⱼμ, I - (1 - σ²)μμᵀ). In log(cosine/sine) each part has a standard
deviation of 1/√2(d - 1) or more; the laws of the package are wider than that, except about the
great sphere, where a smaller σ makes narrower parts. The weights are of least squares, and the
largest error of an expectation is the integral of |p - Σ wⱼ pⱼ| times half the range of its values.
"""

import math

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian
from sterad.sphere.quadrature import log_area, log_chi_mgf, log_cosh, mass_interval
from sterad.sphere.rotational_law import RotationalLaw

VARIANCES = (0.5, 0.1)
"""Values of σ², tried in turn."""
SPACINGS = (0.45, 0.33)
"""Distances of neighbors in standard deviations, tried in turn."""
NODES = 600
CUTOFF_NATS = 26.0
MIN_SINGULAR_VALUE = 1e-14
TOLERANCE = 5e-9
"""Largest accepted integral of |p - Σ wⱼ pⱼ|."""
MIN_WEIGHT = 1e-12


@torch.no_grad()
def as_gaussian_mixture(law: RotationalLaw) -> tuple[Tensor, Tensor, float]:
    """Return the k, (j,), the weights, (j,), and σ² of a law with batch shape (1,); d > 3."""
    best = math.inf
    like = to_double(law.concentration)
    low, high = map(float, mass_interval(law._log_kernel, like, law.dimension, CUTOFF_NATS))
    s = torch.linspace(low, high, NODES, dtype=like.dtype, device=like.device)
    target = _density(law._log_kernel(torch.tanh(s).unsqueeze(-1))[:, 0], s, law.dimension)
    step = (high - low) / (NODES - 1)
    for spacing in SPACINGS:
        for variance in VARIANCES:
            k = _centers(low, high, law.dimension, variance, spacing).to(s)
            parts = _parts(k, variance, s, law.dimension)
            weights = _least_squares(parts, target)
            error = float((parts @ weights - target).abs().sum()) * step
            if error <= TOLERANCE:
                keep = weights.abs() > MIN_WEIGHT
                return k[keep], weights[keep] / weights[keep].sum(), variance
            best = min(best, error)
    raise SteradError(
        f"{type(law).__name__} of concentration {float(law.concentration):.6g} has no mixture of "
        f"Gaussian directions within 5e-9 (best {best:.1e}), which a divergence to a law with a "
        "covariance needs: estimate it as the mean of p.log_prob(x) - q.log_prob(x) over samples x "
        "of p"
    )


def _density(log_kernel: Tensor, s: Tensor, dimension: int) -> Tensor:
    """Return the density of s = artanh(cosine)."""
    constant = log_area(dimension - 1) - log_area(dimension)
    return (log_kernel - (dimension - 1) * log_cosh(s) + constant).exp()


def _centers(low: float, high: float, dimension: int, variance: float, spacing: float) -> Tensor:
    """Return values of k with neighbors that are `spacing` standard deviations apart."""
    scale = math.sqrt(2 * (dimension - 1) * variance)
    first, last = (math.asinh(math.sinh(s) * math.sqrt(dimension - 1) / scale) for s in (low, high))
    width = spacing / math.sqrt(2 * (dimension - 1))
    count = math.ceil((last - first) / width) + 1
    return scale * torch.sinh(torch.linspace(first, last, count, dtype=torch.float64))


def _parts(k: Tensor, variance: float, s: Tensor, dimension: int) -> Tensor:
    """Return the densities of s of the parts: (nodes, j)."""
    t = torch.tanh(s).unsqueeze(-1)
    a = t.square() / variance + torch.exp(-2 * log_cosh(s)).unsqueeze(-1)
    log_kernel = log_chi_mgf(k * t / (variance * a.sqrt()), dimension) - dimension / 2 * a.log()
    log_kernel = log_kernel - k.square() / (2 * variance) - math.log(variance) / 2
    return _density(log_kernel, s.unsqueeze(-1), dimension)


def gaussian_part(axis: Tensor, k: Tensor, variance: float) -> GeneralAngularGaussian:
    """Return the laws of the directions of N(kμ, I - (1 - σ²)μμᵀ); axis: (d,), k: (j,)."""
    eye = torch.eye(len(axis), dtype=axis.dtype, device=axis.device)
    covariance = eye - (1 - variance) * torch.outer(axis, axis)
    return GeneralAngularGaussian(
        k.unsqueeze(-1) * axis, covariance_matrix=covariance, validate_args=False
    )


def _least_squares(parts: Tensor, target: Tensor) -> Tensor:
    u, values, vh = torch.linalg.svd(parts, full_matrices=False)
    keep = values > MIN_SINGULAR_VALUE * values[0]
    weights: Tensor = vh[keep].mT @ ((u[:, keep].mT @ target) / values[keep])
    return weights
