"""Your own law on the sphere: a density that is linear in the cosine.

sterad train agd-fd --plugin examples/my_law.py --law linear --variance 0.5
"""

import torch
from torch import Tensor

from sterad.sphere import LAWS, SphericalLaw


@LAWS.register("linear")
class Linear(SphericalLaw):
    """Density 1 + r t at the cosine t, relative to the uniform law, with r = κ / (1 + κ)."""

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return log(1 + r t), which is normalized: t has mean 0."""
        return torch.log1p(concentration / (1 + concentration) * cosine)

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return κ = 1 / variance."""
        return 1 / variance

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draw t from the uniform law and keep its sign with probability (1 + r t) / 2."""
        noise = torch.randn(*shape, self.dimension, generator=generator, dtype=torch.float64)
        t = torch.nn.functional.normalize(noise, dim=-1)[..., 0]
        kappa = self.concentration.double().expand(shape)
        keep = torch.rand(shape, generator=generator, dtype=torch.float64)
        return torch.where(keep < (1 + kappa / (1 + kappa) * t) / 2, t, -t)
