"""Stage 9: classifiers, from features to classes.

A classifier is fitted to the features of the memory when a learner consolidates. It then scores
features; the class with the highest score is predicted, and the softmax of the scores is the
predicted probability. Fits are in float64, on the CPU for features on MPS, which has no float64.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.devices import to_double
from sterad.registry import Registry

MIN_VARIANCE = 1e-6
"""With one image per class the variance is 0; any positive one gives the same predictions."""
Batches = Iterable[tuple[Tensor, Tensor]]
"""Features (n, d) and labels (n,)."""


class Classifier(Protocol):
    """A model that is fitted to labeled features and scores other features."""

    @property
    def labels(self) -> Tensor:
        """Labels of the columns of `scores`, ascending."""

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Fit to batches of unit-length features (n, d) and labels (n,)."""

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, len(labels)) scores of unit-length features: (n, d)."""


CLASSIFIERS: Registry[type[Classifier]] = Registry("classifier", "sterad.classifiers")


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
        features, labels, rows = _gather(batches)
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


@CLASSIFIERS.register("linear-probe")
@dataclass(frozen=True, eq=False)
class LinearProbe:
    """Multinomial logistic regression on the features, with a small L2 penalty.

    weight: (k, d); bias: (k,); labels: (k,).
    """

    weight: Tensor
    bias: Tensor
    labels: Tensor

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) logits."""
        return features @ self.weight.T + self.bias

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Minimize mean cross-entropy + 1e-4 |W|² by L-BFGS from zero, without randomness."""
        features, labels, rows = _gather(batches)
        weight, bias = _minimize_cross_entropy(features, rows, len(labels))
        return cls(weight.float().to(labels.device), bias.float().to(labels.device), labels)


@CLASSIFIERS.register("standardized-probe")
@dataclass(frozen=True, eq=False)
class StandardizedProbe(LinearProbe):
    """Logistic regression on features that are scaled to mean 0 and variance 1.

    Unit-length features of a network are close to each other: for them the penalty of the linear
    probe is strong, here it does not depend on their scale.
    """

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Fit as the linear probe does, and return its weights for features that are not scaled."""
        features, labels, rows = _gather(batches)
        mean, scale = features.mean(dim=0), features.std(dim=0, correction=0).clamp_min(1e-12)
        scaled = (features - mean) / scale
        weight, bias = _minimize_cross_entropy(scaled, rows, len(labels))
        weight = weight / scale
        bias = bias - weight @ mean
        return cls(weight.float().to(labels.device), bias.float().to(labels.device), labels)


def _minimize_cross_entropy(features: Tensor, rows: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return weights (classes, d) and biases of mean cross-entropy + 1e-4 |W|², by L-BFGS."""
    # Clones, because autograd does not accept tensors created in inference mode.
    features, rows = features.clone(), rows.clone()
    weight = features.new_zeros(classes, features.shape[1], requires_grad=True)
    bias = features.new_zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=200, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(features @ weight.T + bias, rows) + 1e-4 * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weight.detach(), bias.detach()


@CLASSIFIERS.register("knn")
@dataclass(frozen=True, eq=False)
class NearestNeighbors:
    """A vote of the stored features with the largest cosines, weighted by exp(cosine / 0.1).

    features: (m, d) unit rows; rows: (m,) positions in labels: (k,).
    """

    features: Tensor
    rows: Tensor
    labels: Tensor

    NEIGHBORS: ClassVar[int] = 10
    TEMPERATURE: ClassVar[float] = 0.1

    def scores(self, features: Tensor) -> Tensor:
        """Return (n, k) logarithms of the votes exp(cosine / temperature)."""
        k = min(self.NEIGHBORS, len(self.features))
        cosine, nearest = (features @ self.features.T).topk(k, dim=1)
        votes = features.new_zeros(features.shape[0], len(self.labels))  # len() is not traced
        votes.scatter_add_(1, self.rows[nearest], (cosine / self.TEMPERATURE).exp())
        return votes.log()

    @classmethod
    def fit(cls, batches: Batches) -> Self:
        """Store the features."""
        features, labels, rows = _gather(batches)
        return cls(features.float().to(labels.device), rows.to(labels.device), labels)


def _gather(batches: Batches) -> tuple[Tensor, Tensor, Tensor]:
    """Return float64 features, the distinct labels, and the position of each label among them."""
    pairs = list(batches)
    features = to_double(torch.cat([h for h, _ in pairs]))
    labels, rows = torch.cat([y for _, y in pairs]).unique(return_inverse=True)
    return features, labels, rows.to(features.device)
