"""The spherical Cauchy law: S. Kato and P. McCullagh, 2020, https://arxiv.org/abs/1510.07679."""

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.sphere.law import LAWS, SphericalLaw, draw_symmetric_beta


@LAWS.register("spherical-cauchy")
class SphericalCauchy(SphericalLaw):
    """The image of the uniform law under a Möbius transformation, with heavy tails.

    With p = d - 1, g(t) = (√(1 + 2κ/p) / (1 + κ(1 - t)/p))^p. The authors' parameter ρ in
    [0, 1) gives κ = 2pρ/(1 - ρ)² and g(t) = ((1 - ρ²)/(1 + ρ² - 2ρt))^p. With κ, the slope of log g
    at the mode equals that of von Mises-Fisher with the same concentration, in every dimension.

    >>> law = SphericalCauchy.from_rho(torch.eye(3, dtype=torch.float64)[0], 0.5)
    >>> round(law.log_kernel(torch.tensor(1.0, dtype=torch.float64)).exp().item(), 12)
    9.0
    """

    has_differentiable_cosine = True

    @classmethod
    def from_rho(cls, mean_direction: Tensor, rho: Tensor | float) -> "SphericalCauchy":
        """Return the law with the authors' parameter ρ in [0, 1)."""
        rho = torch.as_tensor(rho, dtype=mean_direction.dtype, device=mean_direction.device)
        kappa = 2 * (mean_direction.shape[-1] - 1) * rho / (1 - rho).square()
        return cls(mean_direction, kappa)

    @property
    def rho(self) -> Tensor:
        """The authors' parameter ρ in [0, 1): (*batch)."""
        ratio = torch.sqrt(1 + 2 * self.concentration / (self.dimension - 1))
        return (ratio - 1) / (ratio + 1)

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return p (log√(1 + 2κ/p) - log(1 + κ(1 - t)/p)), p = d - 1."""
        p = dimension - 1
        rate = concentration / p
        return p * (torch.log1p(2 * rate) / 2 - torch.log1p(rate * (1 - cosine)))

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ²: at the mode the density is that of a Gaussian of variance σ²."""
        return 1 / variance

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Scale a uniform point towards the mode in stereographic coordinates."""
        kappa, p = to_double(self.concentration).expand(shape), self.dimension - 1
        far = draw_symmetric_beta(kappa, p, generator)
        near = (1 - far) * (1 + 2 * kappa / p)
        return (near - far) / (near + far)
