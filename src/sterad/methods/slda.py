"""SLDA: streaming linear discriminant analysis, a Gaussian per class with one common covariance.

Tyler L. Hayes, Christopher Kanan: Lifelong Machine Learning with Deep Streaming Linear Discriminant
Analysis. CVPR Workshops 2020, https://arxiv.org/abs/1909.01520

For each row h of class c:
  1. update the count and the mean μ_c of its class;
  2. update the scatter S within classes; Σ = S / n after n rows.
To predict: Σ' = (1 - ε) Σ + ε v I with the mean variance v = tr Σ / d, Λ = Σ'⁻¹. The score of a
class is hᵀΛμ_c - ½ μ_cᵀΛμ_c, with h and μ_c relative to the mean of all rows: the log-likelihood up
to a term that all classes share.

It is exact: any order of rows and any splitting into batches give the same scores, up to rounding.
Memory: d² + k·d numbers for k classes and d features. A row costs O(d²); the first prediction after
a row solves once in O(d³ + k·d²), further ones cost O(k·d).
Differences from the paper: its recursion depends on the order, because it weighs the first rows of
a class as if its mean was known; this scatter is that of all rows around the final means. The
identity is scaled by v, so that predictions do not depend on the unit of the features. ε is the
oracle approximating shrinkage (OAS) of Chen, Wiesel, Eldar, Hero (IEEE Transactions on Signal
Processing 2010) by default, which is strong after few rows (there always 1e-4); it needs Σ and n
only, while Ledoit-Wolf would need fourth moments.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from sterad.methods.base.closed_form import (
    LinearScores,
    PooledClosedForm,
    add_to_diagonal,
    factorize,
)
from sterad.methods.base.learner import METHODS
from sterad.validation import Range


@dataclass(frozen=True)
class SLDAConfig:
    """Our settings, the same for all datasets."""

    shrinkage: Literal["fixed", "oas"] = "oas"
    """How the covariance is shrunk to a multiple of the identity: by a fixed strength, or by one
    estimated from the covariance and the number of rows."""
    strength: Annotated[float, Range(0, 1, open_low=True)] = 1e-4
    """Share ε of the identity with fixed shrinkage; 1: nearest class mean."""


@METHODS.register("slda")
class SLDA(PooledClosedForm):
    """Linear discriminant analysis from running means and a running scatter."""

    Config = SLDAConfig
    config: SLDAConfig

    def solve(self) -> LinearScores:
        """Return the discriminants of the shrunk covariance."""
        counts, means = self.class_statistics()
        rows = counts.sum()
        covariance = self.within_scatter().div_(rows)
        is_fixed = self.config.shrinkage == "fixed"
        share = self.config.strength if is_fixed else oas_strength(covariance, int(rows))
        factor = factorize(shrunk(covariance, share), "set a larger strength")
        center = counts @ means / rows
        deviations = (means - center).T
        weights = torch.cholesky_solve(deviations, factor)
        return LinearScores(center, weights, -(deviations * weights).sum(dim=0) / 2)


def shrunk(covariance: Tensor, share: float) -> Tensor:
    """Return (1 - share) Σ + share v I, in the memory of `covariance`; I if that is zero."""
    variance = covariance.trace() / len(covariance)
    target = (share * variance).where(variance > 0, 1.0)
    return add_to_diagonal(covariance.mul_(1 - share), target)


def oas_strength(covariance: Tensor, rows: int) -> float:
    """Return the oracle approximating shrinkage of the covariance of so many rows.

    >>> oas_strength(torch.diag(torch.tensor([1.0, 3.0])), rows=10)
    0.8
    """
    d, trace = len(covariance), float(covariance.trace())
    squares = float(covariance.square().sum())
    spread = squares - trace**2 / d  # 0 if all eigenvalues are equal
    above = (1 - 2 / d) * squares + trace**2
    below = (rows + 1 - 2 / d) * spread
    return min(above / below, 1.0) if below > 0 else 1.0
