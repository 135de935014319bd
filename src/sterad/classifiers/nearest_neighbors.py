"""The vote of the nearest stored features."""

from dataclasses import dataclass
from typing import ClassVar, Self

from torch import Tensor

from sterad.classifiers.classifier import CLASSIFIERS, Batches, gather


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
        features, labels, rows = gather(batches)
        return cls(features.float().to(labels.device), rows.to(labels.device), labels)
