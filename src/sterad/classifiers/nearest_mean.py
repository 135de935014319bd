"""The nearest class mean."""

from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers.classifier import CLASSIFIERS, MIN_VARIANCE, Batches, gather


@CLASSIFIERS.register("nearest-mean")
@dataclass(frozen=True, eq=False)
class NearestMean:
    """The class with the nearest mean in Euclidean distance; means are not scaled to unit length.

    means: (k, d); labels: (k,). Scores are log-likelihoods of isotropic Gaussians at the means with
    one common variance: -||h - m||² / (2 variance).
    """

    means: Tensor
    labels: Tensor
    variance: float

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) Gaussian log-likelihoods up to a constant common to all classes."""
        # |h|² is the same for every class and is omitted.
        margin = features @ self.means.T - self.means.square().sum(dim=1) / 2
        return margin / self.variance

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Fit to (features, labels) batches; classes without a sample are never predicted.

        >>> h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
        >>> fitted = NearestMean.fit([(h, torch.tensor([4, 7, 7]))])
        >>> fitted.means.tolist(), fitted.labels.tolist()
        ([[1.0, 0.0], [0.0, 2.0]], [4, 7])
        """
        features, labels, rows = gather(batches)
        counts = torch.bincount(rows, minlength=len(labels)).unsqueeze(1)
        sums = features.new_zeros(len(labels), features.shape[1]).index_add_(0, rows, features)
        means = sums / counts
        variance = (features - means[rows]).square().mean().item()
        return cls(means.float().to(labels.device), labels, max(variance, MIN_VARIANCE))

    @classmethod
    def from_moments(cls, means: Tensor, spread: Tensor, counts: Tensor) -> Self:
        """Return what `fit` returns, from moments that can be updated without all features.

        means: (classes, d); spread: (classes,) mean squared distance of the features of each class
        to their mean; counts: (classes,) their number; classes with 0 are never predicted.

        >>> means, spread = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0.0, 1.0])
        >>> NearestMean.from_moments(means, spread, torch.tensor([1, 2])).variance
        0.3333333333333333
        """
        labels = counts.nonzero().squeeze(1)
        means, spread, counts = means[labels], spread[labels], counts[labels]
        variance = float((counts * spread).sum()) / (int(counts.sum()) * means.shape[1])
        return cls(means.float(), labels, max(variance, MIN_VARIANCE))

    def to(self, device: torch.device) -> Self:
        """Return the classifier on `device`."""
        return type(self)(self.means.to(device), self.labels.to(device), self.variance)


@CLASSIFIERS.register("nearest-unit-mean")
@dataclass(frozen=True, eq=False)
class NearestUnitMean(NearestMean):
    """The class whose mean, scaled to unit length, is nearest: the classifier of SCR's paper.

    For unit-length features it is the mean with the largest cosine.
    """

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Fit to (features, labels) batches; classes without a sample are never predicted.

        >>> h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
        >>> NearestUnitMean.fit([(h, torch.tensor([4, 7, 7]))]).means.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        fitted = super().fit(batches)
        return cls(F.normalize(fitted.means), fitted.labels, fitted.variance)
