"""The power spherical law: N. De Cao and W. Aziz, 2020, https://arxiv.org/abs/2006.04437."""

import math

import torch
from torch import Tensor

from sterad.devices import to_double
from sterad.sphere.law import LAWS, SphericalLaw
from sterad.sphere.quadrature import log_area
from sterad.torch_private import standard_gamma


@LAWS.register("power-spherical")
class PowerSpherical(SphericalLaw):
    """The law with density proportional to (1 + t)^κ.

    The density is zero opposite the mode; there 1 + t is bounded below by half of float64's eps,
    which keeps log g finite.

    >>> law = PowerSpherical(torch.eye(3, dtype=torch.float64)[0], 1.0)
    >>> round(law.log_kernel(torch.tensor(0.5, dtype=torch.float64)).exp().item(), 12)
    1.5
    """

    has_differentiable_cosine = True

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return κ log((1 + t)/2) minus the log of the mean of ((1 + t)/2)^κ over the sphere."""
        p = dimension - 1
        half = (1 + cosine).clamp_min(torch.finfo(torch.float64).eps / 2) / 2
        log_numerator = torch.lgamma(concentration + p / 2) - math.lgamma(p / 2)
        log_denominator = torch.lgamma(concentration + p) - math.lgamma(p)
        return concentration * half.log() - (log_numerator - log_denominator)

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 2/σ²: at the mode (1 + t)^κ is a Gaussian of variance 2/κ."""
        return 2 / variance

    @property
    def mean_resultant_length(self) -> Tensor:
        """κ / (κ + d - 1)."""
        return self.concentration / (self.concentration + self.dimension - 1)

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area."""
        kappa, p = to_double(self.concentration), self.dimension - 1
        mean_log = torch.digamma(kappa + p / 2) - torch.digamma(kappa + p)
        top = self.log_kernel_at(torch.ones_like(kappa), kappa, self.dimension)
        value = log_area(self.dimension) - kappa * mean_log - top
        return value.to(self.concentration)

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draw (1 + t)/2 from a beta distribution, as a ratio of gamma variables."""
        kappa = to_double(self.concentration).expand(shape)
        half = (self.dimension - 1) / 2
        near = standard_gamma(kappa + half, generator)
        far = standard_gamma(torch.full_like(kappa, half), generator)
        return (near - far) / (near + far)
