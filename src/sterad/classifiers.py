"""Features to classes: what turns a representation into an answer at evaluation time.

A classifier is fitted when a learner consolidates; then it scores features, and the highest score
wins. Softmax of the scores is the posterior that the classifier believes in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.registry import Registry


class Classifier(Protocol):
    """What is fitted to labeled features and then scores others."""

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
        features, labels, row = _gathered(batches)
        counts = torch.bincount(row, minlength=len(labels)).unsqueeze(1)
        sums = features.new_zeros(len(labels), features.shape[1]).index_add_(0, row, features)
        means = sums / counts
        spread = (features - means[row]).square().mean().item()
        # One image per class has no spread: any positive number gives the same answers.
        return cls(means.float(), labels, max(spread, 1e-6))


@CLASSIFIERS.register("linear-probe")
@dataclass(frozen=True, eq=False)
class LinearProbe:
    """Multinomial logistic regression on the features, with a small ridge, fitted to convergence.

    weight: (k, d); bias: (k,); labels: (k,).
    """

    weight: Tensor
    bias: Tensor
    labels: Tensor

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) logits."""
        return features @ self.weight.T + self.bias

    @classmethod
    def fit(cls, batches: Iterable[tuple[Tensor, Tensor]]) -> "LinearProbe":
        """Minimize mean cross-entropy + 1e-4 |W|² by L-BFGS from zero, which has no randomness."""
        features, labels, row = _gathered(batches)
        # Clones, because autograd refuses tensors that were made in inference mode.
        features, row = features.clone(), row.clone()
        weight = features.new_zeros(len(labels), features.shape[1], requires_grad=True)
        bias = features.new_zeros(len(labels), requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [weight, bias], max_iter=200, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
        )

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(features @ weight.T + bias, row) + 1e-4 * weight.square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return cls(weight.detach().float(), bias.detach().float(), labels)


@CLASSIFIERS.register("knn")
@dataclass(frozen=True, eq=False)
class NearestNeighbours:
    """A vote of the nearest remembered images, by cosine; near ones count more.

    features: (m, d) unit rows; row: (m,) positions in labels: (k,).
    """

    features: Tensor
    row: Tensor
    labels: Tensor

    NEIGHBOURS: ClassVar[int] = 10
    TEMPERATURE: ClassVar[float] = 0.1

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) logarithms of the votes exp(cosine / temperature)."""
        k = min(self.NEIGHBOURS, len(self.features))
        cosine, nearest = (features @ self.features.T).topk(k, dim=1)
        votes = features.new_zeros(len(features), len(self.labels))
        votes.scatter_add_(1, self.row[nearest], (cosine / self.TEMPERATURE).exp())
        return votes.log()

    @classmethod
    def fit(cls, batches: Iterable[tuple[Tensor, Tensor]]) -> "NearestNeighbours":
        """Keep the features."""
        features, labels, row = _gathered(batches)
        return cls(features.float(), row, labels)


def _gathered(batches: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return all features in double precision, the labels among them, and the row of each."""
    pairs = list(batches)
    labels, row = torch.cat([y for _, y in pairs]).unique(return_inverse=True)
    return torch.cat([h for h, _ in pairs]).double(), labels, row
