"""The spherical Cauchy law of Kato and McCullagh (2020), arXiv:1510.07679."""

import torch
from torch import Tensor

from sterad.sphere.draw import symmetric_beta
from sterad.sphere.law import LAWS, SphericalLaw


@LAWS.register("spherical-cauchy")
class SphericalCauchy(SphericalLaw):
    """The Möbius image of the uniform law: heavy tails, and closed in every dimension.

    With p = d - 1, g(t) = (√(1 + 2κ/p) / (1 + κ(1 - t)/p))^p. The authors' parameter ρ in
    [0, 1) gives κ = 2pρ/(1 - ρ)², and g(t) = ((1 - ρ²)/(1 + ρ² - 2ρt))^p; written with κ the law
    falls off from its mode like von Mises-Fisher of the same concentration, in every dimension.

    >>> law = SphericalCauchy.from_rho(torch.eye(3, dtype=torch.float64)[0], 0.5)
    >>> round(law.log_kernel(torch.tensor(1.0, dtype=torch.float64)).exp().item(), 12)
    9.0
    """

    has_rsample = True

    @classmethod
    def from_rho(cls, mean_direction: Tensor, rho: Tensor | float) -> "SphericalCauchy":
        """Build the law from the authors' parameter in [0, 1)."""
        rho = torch.as_tensor(rho, dtype=mean_direction.dtype, device=mean_direction.device)
        kappa = 2 * (mean_direction.shape[-1] - 1) * rho / (1 - rho).square()
        return cls(mean_direction, kappa)

    @property
    def rho(self) -> Tensor:
        """The authors' parameter: (*batch), in [0, 1)."""
        ratio = torch.sqrt(1 + 2 * self.concentration / (self.dimension - 1))
        return (ratio - 1) / (ratio + 1)

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return (d - 1) (log√(1 + 2κ/p) - log(1 + κ(1 - t)/p))."""
        p = dimension - 1
        rate = concentration / p
        return p * (torch.log1p(2 * rate) / 2 - torch.log1p(rate * (1 - cosine)))

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1/σ²: at the mode the density is that of a Gaussian of variance σ².

        >>> SphericalCauchy.concentration_of(0.25)
        4.0
        """
        return 1 / variance

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Shrink a uniform point towards the mode in stereographic coordinates."""
        kappa, p = self.concentration.double().expand(shape), self.dimension - 1
        far = symmetric_beta(kappa, p, generator)
        near = (1 - far) * (1 + 2 * kappa / p)
        return (near - far) / (near + far)
