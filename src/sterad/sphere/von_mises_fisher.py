"""The von Mises-Fisher law, in any dimension.

Its normalizer is an integral over the cosine t = tanh(s): exp(κ tanh s) sech^p(s), p = d - 1, has
one peak where t/(1 - t²) = κ/p. With s = s* + u, τ = tanh u and x = t*τ its exponent relative
to the peak is p (x/(1+x) - log(1+x) - log cosh u): no Bessel function overflows or underflows.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.distributions import register_kl

from sterad.sphere.draw import symmetric_beta
from sterad.sphere.law import LAWS, SphericalLaw, log_area
from sterad.sphere.quadrature import log_cosh, log_tilted_sum, peak_nodes


def _peak(kappa: Tensor, p: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the integrand about its peak as (log terms, cosines) and the height of the peak."""
    root = torch.sqrt(p * p + 4 * kappa.square())
    top = (2 * kappa / (p + root)).unsqueeze(-1)
    # 1 - t*² = 2p/(p + root), from which both the height and the width follow unspoilt.
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
    """Return log E[exp(κt)], t the cosine of a uniform point; float64 in, float64 out.

    It is log(Γ(ν+1) (2/κ)^ν I_ν(κ)) with ν = d/2 - 1, and its derivative I_{ν+1}(κ) / I_ν(κ).

    >>> kappa = torch.tensor(2.0, dtype=torch.float64)
    >>> bool(abs(log_cosine_mgf(kappa, 3) - torch.log(torch.sinh(kappa) / kappa)) < 1e-14)
    True
    """
    still = kappa.detach()
    log_terms, cosines, height = _peak(still, dimension - 1)
    zero = torch.zeros((), dtype=torch.float64, device=kappa.device)
    at_zero = torch.logsumexp(_peak(zero, dimension - 1)[0], dim=-1)
    return height - at_zero + log_tilted_sum(log_terms, cosines, kappa)


@LAWS.register("von-mises-fisher", alias=("vmf",))
class VonMisesFisher(SphericalLaw):
    """The law with log g(t) = κt - log E[exp(κt)].

    >>> law = VonMisesFisher(torch.eye(3, dtype=torch.float64)[0], 2.0)
    >>> round(law.log_prob(law.mode).item(), 12)
    -1.126244439024
    """

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return κ times the cosine less the log normalizer."""
        return concentration * cosine - log_cosine_mgf(concentration, dimension)

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ²: at the mode the density is that of a Gaussian of variance σ².

        >>> VonMisesFisher.concentration_of(0.25)
        4.0
        """
        return 1 / variance

    @property
    def mean_resultant_length(self) -> Tensor:
        """I_{d/2}(κ) / I_{d/2-1}(κ)."""
        log_terms, cosines, _ = _peak(self.concentration.double(), self.dimension - 1)
        length = (torch.softmax(log_terms, -1) * cosines).sum(-1)
        return length.clamp(0, 1).to(self.concentration.dtype)

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area."""
        kappa = self.concentration.double()
        normalizer = log_cosine_mgf(kappa, self.dimension)
        value = log_area(self.dimension) + normalizer - kappa * self.mean_resultant_length.double()
        return value.to(self.concentration.dtype)

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draw by rejection from a transformed beta law; Wood (1994), two in three are accepted."""
        kappa = self.concentration.double().expand(shape).reshape(-1)
        p = self.dimension - 1
        root = torch.sqrt(p * p + 4 * kappa.square())
        top = 2 * kappa / (p + root)
        cosine = torch.empty_like(kappa)
        waiting = torch.arange(len(kappa), device=kappa.device)
        while len(waiting):
            k, x = kappa[waiting], top[waiting]
            b = p / (2 * k + root[waiting])
            share = symmetric_beta(k, p, generator)
            w = (1 - (1 + b) * share) / (1 - (1 - b) * share)
            excess = k * (w - x) + p * (torch.log1p(-x * w) - torch.log1p(-x * x))
            chance = torch.rand(k.shape, generator=generator, dtype=k.dtype, device=k.device)
            accepted = excess >= torch.log1p(-chance)
            cosine[waiting[accepted]] = w[accepted]
            waiting = waiting[~accepted]
        return cosine.reshape(shape)


def _divergence(p: VonMisesFisher, q: VonMisesFisher) -> Tensor:
    mine, other = p.concentration.double(), q.concentration.double()
    cosine = (p.mean_direction.double() * q.mean_direction.double()).sum(-1)
    change = log_cosine_mgf(other, q.dimension) - log_cosine_mgf(mine, p.dimension)
    value = (mine - other * cosine) * p.mean_resultant_length.double() + change
    return value.to(p.concentration.dtype)


cast(Any, register_kl)(VonMisesFisher, VonMisesFisher)(_divergence)
