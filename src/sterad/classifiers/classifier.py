"""The interface of classifiers, their registry, and the rows that they are fitted to."""

from collections.abc import Iterable
from typing import Protocol, Self

import torch
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


def gather(batches: Batches) -> tuple[Tensor, Tensor, Tensor]:
    """Return float64 features, the distinct labels, and the position of each label among them."""
    pairs = list(batches)
    features = to_double(torch.cat([h for h, _ in pairs]))
    labels, rows = torch.cat([y for _, y in pairs]).unique(return_inverse=True)
    return features, labels, rows.to(features.device)
