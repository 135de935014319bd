"""Ridge: least squares with an L2 penalty from running sums, on features or random projections.

Mark D. McDonnell, Dong Gong, Amin Parvaneh, Ehsan Abbasnejad, Anton van den Hengel: RanPAC: Random
Projections and Pre-trained Models for Continual Learning. NeurIPS 2023,
https://arxiv.org/abs/2307.02251

For each row x of class c:
  1. h = ReLU(xW) with a fixed normal W, if `projection` is not 0, else h = x;
  2. update the count and the mean of its class, and the scatter within classes.
To predict: with the mean h̄ and the scatter T of all rows around it, the targets y of a row (1 for
its class, 0 for others), their mean ȳ, and the mean variance v of a feature, solve
(T + λ v I) B = Σ (h - h̄)(y - ȳ)ᵀ. The scores are (h - h̄)B + ȳ.

It is exact: any order of rows and any splitting into batches give the batch solution, up to
rounding, as recursive least squares does. Memory: M² + k·M numbers for k classes and M features.
A row costs O(M²); the first prediction after a row solves once in O(M³ + k·M²), further ones cost
O(k·M).
Differences from the paper: λ is fixed (there it is chosen on held-out rows) and relative to v, so
that predictions do not depend on the unit of the features; there is an intercept by default.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from sterad.classifiers.closed_form import LinearScores, add_to_diagonal, factorize
from sterad.devices import to_device
from sterad.methods.base.closed_form import PooledClosedForm
from sterad.methods.base.learner import METHODS, Problem
from sterad.seeds import generator
from sterad.validation import Positive, Range


@dataclass(frozen=True)
class RidgeConfig:
    """Our settings, the same for all datasets."""

    penalty: Positive = 10.0
    """Penalty λ on squared weights, relative to the mean variance of a feature: as if so many more
    rows had been seen, with independent features and targets."""
    projection: Annotated[int, Range(0, 65_536)] = 0
    """Number M of random features, ReLU(xW); 0: the features themselves (10,000 in the paper)."""
    intercept: bool = True
    """Fit an intercept, which is not penalized: a constant offset of the features has no effect."""


@METHODS.register("ridge", alias=("ranpac",))
class Ridge(PooledClosedForm):
    """Ridge regression on one-hot targets."""

    Config = RidgeConfig
    config: RidgeConfig

    def __init__(self, config: RidgeConfig, problem: Problem) -> None:
        """Draw the projection from the seed, if there is one."""
        super().__init__(config, problem)
        self.weights: Tensor | None = None
        """The fixed projection W: (inputs, M)."""
        if config.projection:
            rng, shape = generator(problem.seed, "projection"), (self.inputs, self.features)
            normal = torch.randn(shape, generator=rng, dtype=torch.float64)
            self.weights = to_device(normal, self.device)

    @property
    def features(self) -> int:
        """The number of random features, or that of the inputs without a projection."""
        return self.config.projection or self.inputs

    @property
    def uses_seed(self) -> bool:
        """Whether there is a random projection."""
        return self.config.projection > 0

    def embed(self, x: Tensor) -> Tensor:
        """Return ReLU(xW) of x: (n, inputs), or x without a projection."""
        return x if self.weights is None else (x @ self.weights).relu_()

    def solve(self) -> LinearScores:
        """Return the regression on the targets of all seen classes."""
        counts, means = self.class_statistics()
        rows = counts.sum()
        center, targets = counts @ means / rows, counts / rows
        if not self.config.intercept:
            center, targets = torch.zeros_like(center), torch.zeros_like(targets)
        sums = (means - center).T * counts
        gram = self.within_scatter().addmm_(sums, means - center)
        variance = gram.trace() / (rows * self.features)
        # A variance of 0 means that all rows are equal, and all weights are 0.
        penalty = self.config.penalty * variance.where(variance > 0, 1.0)
        factor = factorize(add_to_diagonal(gram, penalty), "set a larger penalty")
        return LinearScores(center, torch.cholesky_solve(sums, factor), targets)
