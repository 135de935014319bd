"""Classifiers that are solved in closed form: linear discriminant analysis and ridge regression.

The learners `slda` and `ridge` compute the same from running statistics of a stream; these are
fitted to the unit-length features of a memory, and need no field.
"""

from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers.classifier import CLASSIFIERS, MIN_VARIANCE, Batches, gather
from sterad.classifiers.closed_form import (
    LinearScores,
    add_to_diagonal,
    discriminants,
    oas_strength,
    shrunk,
)

PENALTIES = tuple(10.0**power for power in range(-4, 5))
"""Penalties of ridge regression to choose among, relative to the mean variance of a feature."""


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """Scores (h - center) @ weights + bias; center: (d,), weights: (d, k), bias, labels: (k,)."""

    center: Tensor
    weights: Tensor
    bias: Tensor
    labels: Tensor

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) scores; differences first, so that an offset of the features cancels."""
        return torch.addmm(self.bias, features - self.center, self.weights)

    @classmethod
    def of(cls, solved: LinearScores, labels: Tensor) -> Self:
        """Return the classifier of float64 scores, in float32 beside its labels."""
        center, weights, bias = (one.float().to(labels.device) for one in solved)
        return cls(center, weights, bias, labels)


@CLASSIFIERS.register("lda")
@dataclass(frozen=True, eq=False)
class LinearDiscriminant(LinearClassifier):
    """A Gaussian per class with one common covariance, which is shrunk to a multiple of I by OAS.

    Unlike the nearest mean it weighs down directions in which all classes vary.
    """

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Fit to (features, labels) batches; classes without a sample are never predicted."""
        features, labels, rows = gather(batches)
        counts, means = _class_means(features, rows, len(labels))
        within = features - means[rows]
        covariance = within.T @ within / len(rows)
        covariance = shrunk(covariance, oas_strength(covariance, len(rows)))
        # Of classes that collapse to points the covariance is rounding errors, as its inverse is.
        missing = MIN_VARIANCE - covariance.trace() / len(covariance)
        add_to_diagonal(covariance, missing.clamp(min=0))
        return cls.of(discriminants(counts, means, covariance), labels)


@CLASSIFIERS.register("ridge")
@dataclass(frozen=True, eq=False)
class RidgeRegression(LinearClassifier):
    """Least squares on one-hot targets with an intercept and an L2 penalty.

    The penalty is the one of `PENALTIES` whose squared error on left-out rows is smallest: each row
    is predicted from all others, in closed form and without randomness.
    """

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Fit to (features, labels) batches; classes without a sample are never predicted."""
        features, labels, rows = gather(batches)
        center = features.mean(dim=0)
        targets = F.one_hot(rows, len(labels)).double()
        share = targets.mean(dim=0)
        weights = _best_ridge(features - center, targets - share)
        return cls.of(LinearScores(center, weights, share), labels)


def _class_means(features: Tensor, rows: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return counts (classes,) and means (classes, d)."""
    counts = torch.bincount(rows, minlength=classes).double()
    sums = features.new_zeros(classes, features.shape[1]).index_add_(0, rows, features)
    return counts, sums / counts.unsqueeze(1)


def _best_ridge(x: Tensor, y: Tensor) -> Tensor:
    """Return weights (d, k) with the penalty of the smallest leave-one-out error.

    x: (n, d) and y: (n, k), both with mean 0. With xᵀx = VΛVᵀ the prediction of a row by the others
    has the residual r_i / (1 - 1/n - Σ_j (xV)_ij² / (Λ_j + λ)) for the residual r_i of the fit to
    all rows; 1/n is the intercept's part.
    """
    eigenvalues, basis = torch.linalg.eigh(x.T @ x)
    rotated, sums = x @ basis, basis.T @ (x.T @ y)
    variance = max(float(eigenvalues.mean()) / len(x), MIN_VARIANCE)
    inverses = [1 / (eigenvalues.clamp(min=0) + penalty * variance) for penalty in PENALTIES]

    def left_out_error(inverse: Tensor) -> float:
        residuals = y - rotated @ (inverse.unsqueeze(1) * sums)
        leverage = rotated.square() @ inverse + 1 / len(x)
        kept = (1 - leverage).clamp(min=1e-9).unsqueeze(1)
        return float((residuals / kept).square().sum())

    best = min(inverses, key=left_out_error)
    weights: Tensor = basis @ (best.unsqueeze(1) * sums)
    return weights
