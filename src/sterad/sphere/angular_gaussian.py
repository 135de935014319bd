"""The angular Gaussian: the direction of a Gaussian vector with equal variances.

J. G. Saw, "A Family of Distributions on the m-Sphere and Some Hypothesis Tests", Biometrika 65(1),
1978, https://doi.org/10.1093/biomet/65.1.69. The paper's series lacks a factor; docs/mathematics.md
has the form that integrates to one.
"""

import math

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.sphere.law import LAWS, SphericalLaw
from sterad.sphere.quadrature import log_chi_mgf, log_cosh, peak_nodes


@LAWS.register("angular-gaussian", alias=("agd", "projected-normal"))
class AngularGaussian(SphericalLaw):
    """The direction of X ~ N(κμ, I): log g(t) = -κ²/2 + log E[exp(κtR)], R ~ χ_d.

    >>> law = AngularGaussian(torch.eye(3, dtype=torch.float64)[0], 1.0)
    >>> round(law.log_kernel(torch.tensor(0.5, dtype=torch.float64)).item(), 12)
    0.35771469893
    """

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return -κ²/2 + log E[exp(κtR)]."""
        return log_chi_mgf(concentration * cosine, dimension) - concentration.square() / 2

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ for X ~ N(μ, σ²I) with a mean of unit length."""
        return 1 / math.sqrt(variance)

    @property
    def mean_resultant_length(self) -> Tensor:
        """E[t] = κ/√2π ∫ exp(-κ² tanh²s / 2) sech^{d+1}s ds: (*batch)."""
        kappa = to_double(self.concentration).unsqueeze(-1)
        # The integrand has one peak, at 0; 1/√(d + 1 + κ²) is its standard deviation there.
        nodes, log_weights = peak_nodes(-12.0, 12.0, 0.2, kappa.device)
        width = torch.rsqrt(self.dimension + 1 + kappa.square())
        s = nodes * width
        exponent = -(kappa * torch.tanh(s)).square() / 2 - (self.dimension + 1) * log_cosh(s)
        integral = (width * (exponent + log_weights).exp()).sum(-1)
        return (kappa.squeeze(-1) / math.sqrt(2 * math.pi) * integral).to(self.concentration)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        mean = to_double(self.concentration).unsqueeze(-1) * to_double(self.mean_direction)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=mean.device)
        return torch.nn.functional.normalize(mean + noise, dim=-1).to(self.mean_direction)


def equivalent_temperature(variance: float, dimension: int) -> float:
    """Return κ E[R], the inverse temperature of the softmax that the loss is close to.

    log g is linear in the cosine, with this slope, up to a term of the order of κ²/4.

    >>> round(equivalent_temperature(2.0, 512), 2)
    15.99
    """
    kappa = AngularGaussian.concentration_of(variance)
    log_ratio = math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2)
    return kappa * math.sqrt(2) * math.exp(log_ratio)
