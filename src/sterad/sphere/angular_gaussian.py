"""The angular Gaussian: the direction of a Gaussian vector with equal variances.

Saw (1978), doi:10.1093/biomet/65.1.69, in the form that integrates to one.
"""

import math

import torch
from torch import Tensor

from sterad.sphere.chi import log_chi_mgf
from sterad.sphere.law import LAWS, SphericalLaw
from sterad.sphere.quadrature import log_cosh, peak_nodes


@LAWS.register("angular-gaussian", alias=("agd", "projected-normal"))
class AngularGaussian(SphericalLaw):
    """The direction of X ~ N(κμ, I): log g(t) = -κ²/2 + log E[exp(κtR)], R ~ chi in d dimensions.

    >>> law = AngularGaussian(torch.eye(3, dtype=torch.float64)[0], 1.0)
    >>> round(law.log_kernel(torch.tensor(0.5, dtype=torch.float64)).item(), 12)
    0.35771469893
    """

    has_rsample = True

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return -κ²/2 plus the chi cumulant function at κ times the cosine."""
        return log_chi_mgf(concentration * cosine, dimension) - concentration.square() / 2

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ for X ~ N(μ, σ²I) with a mean of unit length.

        >>> AngularGaussian.concentration_of(4.0)
        0.5
        """
        return 1 / math.sqrt(variance)

    @property
    def mean_resultant_length(self) -> Tensor:
        """E[cosine] = κ/√2π ∫ exp(-κ² tanh²s / 2) sech^{d+1}s ds, an integral about one peak."""
        kappa = self.concentration.double().unsqueeze(-1)
        nodes, log_weights = peak_nodes(-12.0, 12.0, 0.2, kappa.device)
        width = torch.rsqrt(self.dimension + 1 + kappa.square())
        s = nodes * width
        exponent = -(kappa * torch.tanh(s)).square() / 2 - (self.dimension + 1) * log_cosh(s)
        integral = (width * (exponent + log_weights).exp()).sum(-1)
        return (kappa.squeeze(-1) / math.sqrt(2 * math.pi) * integral).to(self.concentration.dtype)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        mean = self.concentration.double().unsqueeze(-1) * self.mean_direction.double()
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=mean.device)
        return torch.nn.functional.normalize(mean + noise, dim=-1).to(self.mean_direction.dtype)


def equivalent_temperature(variance: float, dimension: int) -> float:
    """Return κ E[R], the von Mises-Fisher concentration that the angular Gaussian acts like.

    log g is linear in the cosine up to a term of the order of κ²/4, so the loss is a softmax with
    this inverse temperature.

    >>> round(equivalent_temperature(2.0, 512), 2)
    15.99
    """
    kappa = AngularGaussian.concentration_of(variance)
    log_ratio = math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2)
    return kappa * math.sqrt(2) * math.exp(log_ratio)
