"""The Watson law of axes: u and -u have the same density.

The normalizer is Kummer's function M(1/2, d/2, κ) = E[exp(κy)], where y = t² of a uniform point has
a beta distribution. In v = log(y/(1-y)) the integrand has one peak for either sign of κ, where
κy² - (κ - d/2) y - 1/2 = 0. With v = v* + u and D = 1 - y* + y* e^u, the exponent relative to the
peak is (d y*/2 - 1/2)(e^u - 1)/D + u/2 - (d/2) log D, in which κ does not occur.
"""

from typing import Self

import torch
from torch import Tensor
from torch.distributions import constraints

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import unit_sphere
from sterad.sphere.fit import Fit
from sterad.sphere.maximum_likelihood import MAX_KAPPA, Maximum
from sterad.sphere.quadrature import log_tilted_sum, peak_nodes
from sterad.sphere.rotational_law import RotationalLaw
from sterad.sphere.weighted_points import WeightedPoints

MAX_NEWTON_STEPS = 60
MIN_EIGENVALUE = 1e-12
"""Smallest eigenvalue of the scatter matrix from which on the points span the space."""


def _peak(kappa: Tensor, dimension: int) -> tuple[Tensor, Tensor]:
    """Return y* and 1 - y*, each without cancellation."""
    d, slope = dimension, kappa - dimension / 2
    root = torch.sqrt(kappa.square() - (d - 2) * kappa + d * d / 4)
    is_high = slope > 0
    high = (slope + root) / torch.where(is_high, 2 * kappa, 1.0)
    y = torch.where(is_high, high, 1 / (root - torch.where(is_high, -1.0, slope)))
    rest = (d - 1) / (torch.where(is_high, kappa, 0.0) + d / 2 + root)
    return y, torch.where(is_high & (y > 0.5), rest, 1 - y)


def _terms(kappa: Tensor, dimension: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log terms of the integral relative to the peak, their y, and log(peak)."""
    d = dimension
    nodes, log_weights = peak_nodes(-13.0, 13.0, 0.125, kappa.device)
    y, rest = _peak(kappa, d)
    width = torch.rsqrt(y * rest * (d / 2 - kappa * (rest - y))).unsqueeze(-1)
    height = kappa * y + y.log() / 2 + (d - 1) / 2 * rest.log()
    y, rest = y.unsqueeze(-1), rest.unsqueeze(-1)
    u = (nodes * width).clamp(-600, 600)
    log_d = torch.logaddexp(rest.log().expand_as(u), y.log() + u)
    ratio = torch.exp(-log_d)
    # (e^u - 1)/D, in a form that does not overflow for large u.
    growth = torch.where(u > 0, -torch.expm1(-u) * torch.exp(u - log_d), torch.expm1(u) * ratio)
    exponent = (d * y / 2 - 0.5) * growth + u / 2 - d / 2 * log_d
    return exponent + log_weights + width.log(), y * torch.exp(u - log_d), height


def log_kummer(kappa: Tensor, dimension: int) -> Tensor:
    """Return log M(1/2, d/2, κ) for either sign of κ; float64 in, float64 out.

    Its derivatives with respect to κ are the cumulants of the squared cosine.

    >>> kappa = torch.tensor([-2.0, 0.0, 2.0], dtype=torch.float64)
    >>> [round(x, 12) + 0.0 for x in log_kummer(kappa, 3).tolist()]
    [-0.513923740208, 0.0, 0.860547083146]
    """
    log_terms, squares, height = _terms(kappa.detach(), dimension)
    zero = torch.zeros((), dtype=torch.float64, device=kappa.device)
    log_terms_at_zero, _, height_at_zero = _terms(zero, dimension)
    at_zero = height_at_zero + torch.logsumexp(log_terms_at_zero, dim=-1)
    return height - at_zero + log_tilted_sum(log_terms, squares, kappa)


def square_moments(kappa: Tensor, dimension: int) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the squared cosine; float64 in, float64 out."""
    log_terms, squares, _ = _terms(kappa, dimension)
    weights = torch.softmax(log_terms, -1)
    mean = (weights * squares).sum(-1, keepdim=True)
    return mean.squeeze(-1), (weights * (squares - mean).square()).sum(-1)


def solve_concentration(square: Tensor, dimension: int) -> Tensor:
    """Return the κ in ±`MAX_KAPPA` with E[t²] = `square` by Newton's method; float64.

    It starts from the lower bound of S. Sra and D. Karp, "The Multivariate Watson Distribution",
    2013, https://arxiv.org/abs/1104.4422.

    >>> kappa = solve_concentration(torch.tensor([0.25, 1 / 3, 0.5]).double(), 3)
    >>> square_moments(kappa, 3)[0].round(decimals=6)
    tensor([0.2500, 0.3333, 0.5000], dtype=torch.float64)
    """
    c = dimension / 2
    r = square.clamp(1e-15, 1 - 1e-15)
    kappa = (c * r - 0.5) / (r * (1 - r)) * (1 + (1 - r) / (c - 0.5))
    kappa = kappa.clamp(-MAX_KAPPA, MAX_KAPPA)
    for _ in range(MAX_NEWTON_STEPS):
        mean, variance = square_moments(kappa, dimension)
        reach = kappa.abs() + 1
        step = torch.minimum(torch.maximum((square - mean) / variance, -reach), reach)
        new = (kappa + step).clamp(-MAX_KAPPA, MAX_KAPPA)
        is_done = bool(((new - kappa).abs() <= 1e-13 * (kappa.abs() + 1e-3)).all())
        kappa = new
        if is_done:
            break
    return kappa


class Watson(RotationalLaw):
    """The law with log g(t) = κt² - log M(1/2, d/2, κ).

    κ > 0: points are near the axis ±mean_direction (bipolar); κ < 0: near the great sphere
    orthogonal to it (girdle); κ = 0: uniform. The mean is zero.

    >>> law = Watson(torch.eye(3, dtype=torch.float64)[0], -2.0)
    >>> round(law.log_kernel(torch.tensor(0.0, dtype=torch.float64)).item(), 12)
    0.513923740208
    """

    arg_constraints: dict[str, constraints.Constraint] = {  # noqa: RUF012
        "mean_direction": unit_sphere,
        "concentration": constraints.real,
    }
    has_signed_concentration = True

    def _require_concentration(self, concentration: Tensor) -> None:
        if not bool(concentration.isfinite().all()):
            raise SteradError("concentration must be finite: check how it was computed")

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return κt² - log M(1/2, d/2, κ)."""
        return concentration * cosine.square() - log_kummer(concentration, dimension)

    @property
    def mode(self) -> Tensor:
        """The mean direction if κ > 0, as one of two modes; otherwise a direction orthogonal to it.

        For κ < 0 every direction orthogonal to the mean direction is a mode.
        """
        mu = self.mean_direction
        axis = torch.nn.functional.one_hot(mu.abs().argmin(-1), mu.shape[-1]).to(mu)
        across = axis - (axis * mu).sum(-1, keepdim=True) * mu
        across = torch.nn.functional.normalize(across, dim=-1)
        return torch.where((self.concentration > 0).unsqueeze(-1), mu, across)

    @property
    def mean_resultant_length(self) -> Tensor:
        """Zero, as u and -u have the same density."""
        return torch.zeros_like(self.concentration)

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area: (*batch)."""
        kappa = to_double(self.concentration)
        mean = square_moments(kappa, self.dimension)[0]
        return self._entropy_of(log_kummer(kappa, self.dimension) - kappa * mean)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        """Fit to the scatter matrix: an extreme eigenvector, and κ from its eigenvalue.

        The girdle form is considered only if the points span the space: its likelihood is unbounded
        otherwise. In two dimensions both forms are one law, returned with κ >= 0.
        """
        count, d = data.count, data.dimension
        values, vectors = torch.linalg.eigh(data.scatter() / count[:, None, None])
        values = values.clamp(0, 1)
        first, last = (_maximum(values[:, i], vectors[..., i], count) for i in (0, -1))
        is_girdle = (first.log_likelihood > last.log_likelihood) & (values[:, 0] > MIN_EIGENVALUE)
        best = last.where(~is_girdle, first) if d > 2 else last
        return best.as_fit(cls, count.reshape(data.batch_shape), data.points)


def _maximum(square: Tensor, axis: Tensor, count: Tensor) -> Maximum:
    """Return the maximum at an eigenvector, with E[t²] its eigenvalue."""
    d = axis.shape[-1]
    kappa = solve_concentration(square, d)
    other = (1 - square) / (d - 1)
    return Maximum(
        direction=axis,
        concentration=kappa,
        log_likelihood=count * (kappa * square - log_kummer(kappa, d)),
        information=count * square_moments(kappa, d)[1],
        curvature=2 * count * kappa * (square - other),
        at_limit=kappa.abs() >= MAX_KAPPA,
        converged=torch.ones_like(kappa, dtype=torch.bool),
    )
