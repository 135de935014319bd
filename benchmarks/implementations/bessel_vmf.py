"""The von Mises-Fisher law in torch in the usual way: Bessel functions of SciPy, Wood's rejection.

For comparison only. The normalizer is (d/2 - 1) log κ - (d/2) log 2π - log I_{d/2-1}(κ) with
log I = log ive + κ, which is -inf where ive underflows.
"""

import math

import scipy.special
import torch
from torch import Tensor


class BesselVonMisesFisher:
    """One law: mean direction (d,) and concentration, both float64."""

    def __init__(self, mean_direction: Tensor, concentration: float) -> None:
        self.mean_direction = mean_direction
        self.concentration = concentration
        self.dimension = len(mean_direction)

    def log_prob(self, points: Tensor) -> Tensor:
        """Return the log-density with respect to area: (n,)."""
        return self.concentration * (points @ self.mean_direction) + self.log_normalizer()

    def log_normalizer(self) -> float:
        """Return the log of the factor of exp(κt)."""
        order, kappa = self.dimension / 2 - 1, self.concentration
        bessel = float(scipy.special.ive(order, kappa))
        log_bessel = (math.log(bessel) if bessel > 0 else -math.inf) + kappa
        return order * math.log(kappa) - (order + 1) * math.log(2 * math.pi) - log_bessel

    def sample(self, count: int) -> Tensor:
        """Draw cosines by rejection around e₁, and reflect e₁ to the mean direction."""
        cosine = self._sample_cosine(count).unsqueeze(1)
        tangent = torch.randn(count, self.dimension - 1, dtype=torch.float64)
        tangent = tangent / tangent.norm(dim=1, keepdim=True)
        points = torch.cat([cosine, (1 - cosine**2).clamp_min(0).sqrt() * tangent], 1)
        normal = -self.mean_direction.clone()
        normal[0] += 1
        normal = normal / normal.norm().clamp_min(1e-12)
        return points - 2 * (points @ normal).unsqueeze(1) * normal

    def _sample_cosine(self, count: int) -> Tensor:
        p, kappa = self.dimension - 1, self.concentration
        b = (-2 * kappa + math.sqrt(4 * kappa**2 + p**2)) / p
        x = (1 - b) / (1 + b)
        c = kappa * x + p * math.log(1 - x**2)
        beta = torch.distributions.Beta(
            torch.tensor(p / 2, dtype=torch.float64), torch.tensor(p / 2, dtype=torch.float64)
        )
        cosine = torch.empty(count, dtype=torch.float64)
        pending = torch.arange(count)
        while len(pending):
            e = beta.sample(torch.Size([len(pending)]))
            w = (1 - (1 + b) * e) / (1 - (1 - b) * e)
            excess = kappa * w + p * torch.log(1 - x * w) - c
            accepted = excess >= torch.log(torch.rand(len(pending), dtype=torch.float64))
            cosine[pending[accepted]] = w[accepted]
            pending = pending[~accepted]
        return cosine
