"""Features to classes: what turns a representation into an answer at evaluation time.

A classifier is fitted when a learner consolidates; then it scores features, and the highest score
wins. Softmax of the scores is the posterior that the classifier believes in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from sterad.registry import Registry


class Classifier(Protocol):
    """What is fitted to labelled features and then scores others."""

    @property
    def labels(self) -> Tensor:
        """Labels of the columns of `scores`, ascending."""

    @classmethod
    def fit(cls, batches: Iterable[tuple[Tensor, Tensor]]) -> Self:
        """Fit to batches of unit-length features (n, d) and labels (n,)."""

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, len(labels)) scores of unit-length features: (n, d)."""


CLASSIFIERS: Registry[type[Classifier]] = Registry("classifier", "sterad.classifiers")


@CLASSIFIERS.register("nearest-mean")
@dataclass(frozen=True, eq=False)
class NearestMean:
    """The class whose mean is nearest in Euclidean distance; means are not scaled to unit length.

    means: (k, d); labels: (k,). Scores are log-likelihoods of isotropic Gaussians around the means
    with one common variance: -||h - m||² / (2 variance).
    """

    means: Tensor
    labels: Tensor
    variance: float

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) Gaussian log-likelihoods up to a constant common to all classes."""
        # |h|² is the same for every class and is left out: h.m - |m|²/2 orders as the distance.
        margin = features @ self.means.T - self.means.square().sum(dim=1) / 2
        return margin / self.variance

    @classmethod
    def fit(cls, batches: Iterable[tuple[Tensor, Tensor]]) -> "NearestMean":
        """Fit to (features, labels) batches in one pass; classes without a sample are left out.

        >>> h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
        >>> fitted = NearestMean.fit([(h, torch.tensor([4, 7, 7]))])
        >>> fitted.means.tolist(), fitted.labels.tolist()
        ([[1.0, 0.0], [0.0, 2.0]], [4, 7])
        """
        pairs = list(batches)
        features = torch.cat([h for h, _ in pairs]).double()
        labels, row = torch.cat([y for _, y in pairs]).unique(return_inverse=True)
        counts = torch.bincount(row, minlength=len(labels)).unsqueeze(1)
        sums = features.new_zeros(len(labels), features.shape[1]).index_add_(0, row, features)
        means = sums / counts
        spread = (features - means[row]).square().mean().item()
        # One image per class has no spread: any positive number gives the same answers.
        return cls(means.float(), labels, max(spread, 1e-6))
