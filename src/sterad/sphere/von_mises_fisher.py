"""The von Mises-Fisher law, in any dimension.

The normalizer is the integral of exp(κ tanh s) sech^p(s), where t = tanh(s) is the cosine and
p = d - 1. It has one peak, at t*/(1 - t*²) = κ/p. With s = s* + u, τ = tanh u and x = t*τ, the
exponent relative to the peak is p (x/(1+x) - log(1+x) - log cosh u). This needs no Bessel function,
which would overflow or underflow (scipy.special.ive is zero at d = 2048, κ = 100).
"""

from typing import Self

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import as_float_tensor
from sterad.sphere.fit import Fit
from sterad.sphere.law import LAWS, SphericalLaw, draw_symmetric_beta
from sterad.sphere.maximum_likelihood import (
    MAX_KAPPA,
    Maximum,
    approximate_kappa,
    split_resultant,
)
from sterad.sphere.quadrature import log_area, log_cosh, log_tilted_sum, peak_nodes
from sterad.sphere.weighted_points import WeightedPoints

MAX_NEWTON_STEPS = 20
"""For the concentration; about five are needed."""


def _terms(kappa: Tensor, p: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log terms of the integral relative to the peak, their cosines, and log(peak)."""
    root = torch.sqrt(p * p + 4 * kappa.square())
    top = (2 * kappa / (p + root)).unsqueeze(-1)
    # 1 - t*² = 2p/(p + root), written so that nothing cancels when t* is close to 1.
    log_gap = -torch.log1p(2 * kappa.square() / (p * (p + root)))
    nodes, log_weights = peak_nodes(-13.0, 13.0, 0.125, kappa.device)
    width = torch.rsqrt(p * (1 + top.square()))
    u = nodes * width
    tau = torch.tanh(u)
    x = top * tau
    exponent = p * (x / (1 + x) - torch.log1p(x) - log_cosh(u))
    height = kappa * top.squeeze(-1) + p / 2 * log_gap
    return exponent + log_weights + width.log(), (top + tau) / (1 + x), height


def log_cosine_mgf(kappa: Tensor, dimension: int) -> Tensor:
    """Return log E[exp(κt)] for the cosine t of a uniform point; float64 in, float64 out.

    It equals log(Γ(ν+1) (2/κ)^ν I_ν(κ)), ν = d/2 - 1; its derivative is I_{ν+1}(κ) / I_ν(κ).

    >>> kappa = torch.tensor(2.0, dtype=torch.float64)
    >>> bool(abs(log_cosine_mgf(kappa, 3) - torch.log(torch.sinh(kappa) / kappa)) < 1e-14)
    True
    """
    log_terms, cosines, height = _terms(kappa.detach(), dimension - 1)
    zero = torch.zeros((), dtype=torch.float64, device=kappa.device)
    log_integral_at_zero = torch.logsumexp(_terms(zero, dimension - 1)[0], dim=-1)
    return height - log_integral_at_zero + log_tilted_sum(log_terms, cosines, kappa)


def cosine_moments(kappa: Tensor, dimension: int) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the cosine at concentration κ; float64 in, float64 out.

    >>> mean, _ = cosine_moments(torch.tensor(2.0, dtype=torch.float64), 3)
    >>> round(mean.item(), 6)  # coth 2 - 1/2
    0.537315
    """
    log_terms, cosines, _ = _terms(kappa, dimension - 1)
    weights = torch.softmax(log_terms, -1)
    mean = (weights * cosines).sum(-1, keepdim=True)
    return mean.squeeze(-1), (weights * (cosines - mean).square()).sum(-1)


def solve_concentration(length: Tensor, dimension: int) -> Tensor:
    """Return the κ, at most `MAX_KAPPA`, with mean resultant `length` in [0, 1]; float64.

    Newton's method on A(κ) = length. A is concave, so after one step the iterates increase towards
    the root.

    >>> kappa = solve_concentration(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64), 3)
    >>> [round(x, 6) for x in kappa.tolist()]
    [0.0, 1.796756, 100000000.0]
    """
    kappa = approximate_kappa(length, dimension)
    for _ in range(MAX_NEWTON_STEPS):
        mean, variance = cosine_moments(kappa, dimension)
        new = torch.maximum(kappa + (length - mean) / variance, kappa / 4).clamp_max(MAX_KAPPA)
        is_done = bool(((new - kappa).abs() <= 1e-14 * kappa).all())
        kappa = new
        if is_done:
            break
    return torch.where(length == 0, 0.0, kappa)


@LAWS.register("von-mises-fisher", alias=("vmf",))
class VonMisesFisher(SphericalLaw):
    """The law with log g(t) = κt - log E[exp(κt)].

    >>> law = VonMisesFisher(torch.eye(3, dtype=torch.float64)[0], 2.0)
    >>> round(law.log_prob(law.mode).item(), 12)
    -1.126244439024
    """

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return κt - log E[exp(κt)]."""
        return concentration * cosine - log_cosine_mgf(concentration, dimension)

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ²: at the mode the density is that of a Gaussian of variance σ²."""
        return 1 / variance

    @property
    def mean_resultant_length(self) -> Tensor:
        """I_{d/2}(κ) / I_{d/2-1}(κ)."""
        log_terms, cosines, _ = _terms(to_double(self.concentration), self.dimension - 1)
        length = (torch.softmax(log_terms, -1) * cosines).sum(-1)
        return length.clamp(0, 1).to(self.concentration)

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area."""
        kappa, length = to_double(self.concentration), to_double(self.mean_resultant_length)
        value = log_area(self.dimension) + log_cosine_mgf(kappa, self.dimension) - kappa * length
        return value.to(self.concentration)

    @classmethod
    def fit_resultant(cls, resultant: Tensor, count: Tensor) -> Fit[Self]:
        """Return the law of maximum likelihood from the sum of the points and their number.

        resultant: (*batch, d), the weighted sum of unit rows; count: (*batch), the sum of the
        weights. These two determine the fit, so that points can be read in chunks.

        >>> points = torch.tensor([[0.6, 0.8], [0.8, 0.6]])
        >>> fit = VonMisesFisher.fit_resultant(points.sum(0), torch.tensor(2.0))
        >>> bool(torch.allclose(fit.law.mean_direction, torch.tensor([0.5, 0.5]).sqrt()))
        True
        """
        total = as_float_tensor("resultant", resultant).detach()
        count = to_double(as_float_tensor("count", count).detach()).expand(total.shape[:-1])
        if not bool((count > 0).all() and count.isfinite().all() and total.isfinite().all()):
            raise SteradError("count and resultant must be finite, and count above 0")
        return cls._fit_sums(to_double(total), count, total)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        total = data.resultant().reshape(*data.batch_shape, data.dimension)
        return cls._fit_sums(total, data.count.reshape(data.batch_shape), data.points)

    @classmethod
    def _fit_sums(cls, total: Tensor, count: Tensor, like: Tensor) -> Fit[Self]:
        """Return the fit from float64 sums, in the dtype of `like`."""
        dimension = total.shape[-1]
        direction, length = split_resultant(total, count)
        kappa = solve_concentration(length, dimension)
        maximum = Maximum(
            direction=direction,
            concentration=kappa,
            log_likelihood=count * (kappa * length - log_cosine_mgf(kappa, dimension)),
            information=count * cosine_moments(kappa, dimension)[1],
            curvature=count * kappa * length,
            at_limit=(length == 0) | (kappa >= MAX_KAPPA),
            converged=torch.ones_like(kappa, dtype=torch.bool),
        )
        return maximum.as_fit(cls, count, like)

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draw by rejection from a transformed beta distribution.

        A. T. A. Wood, "Simulation of the von Mises Fisher Distribution", Communications in
        Statistics - Simulation 23(1), 1994, https://doi.org/10.1080/03610919408813161. About two
        proposals in three are accepted.
        """
        kappa = to_double(self.concentration).expand(shape).reshape(-1)
        p = self.dimension - 1
        root = torch.sqrt(p * p + 4 * kappa.square())
        top = 2 * kappa / (p + root)
        cosine = torch.empty_like(kappa)
        pending = torch.arange(len(kappa), device=kappa.device)
        while len(pending):
            k, x = kappa[pending], top[pending]
            b = p / (2 * k + root[pending])
            beta = draw_symmetric_beta(k, p, generator)
            w = (1 - (1 + b) * beta) / (1 - (1 - b) * beta)
            excess = k * (w - x) + p * (torch.log1p(-x * w) - torch.log1p(-x * x))
            uniform = torch.rand(k.shape, generator=generator, dtype=k.dtype, device=k.device)
            accepted = excess >= torch.log1p(-uniform)
            cosine[pending[accepted]] = w[accepted]
            pending = pending[~accepted]
        return cosine.reshape(shape)
