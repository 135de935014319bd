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

from sterad.classifiers.closed_form import LinearScores, discriminants, oas_strength, shrunk
from sterad.methods.base.closed_form import PooledClosedForm
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
        return discriminants(counts, means, shrunk(covariance, share))
