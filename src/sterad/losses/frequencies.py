"""Class frequencies as they come: the priors of a posterior on a stream."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class ClassFrequencies:
    """How often each class has been seen, as a value that `seen` replaces by the next.

    >>> counts = ClassFrequencies.of(4).seen(torch.tensor([1, 1, 3]))
    >>> counts.classes(), counts.log_priors(counts.classes()).exp()
    (tensor([1, 3]), tensor([0.6667, 0.3333]))
    """

    counts: Tensor
    """Weight of each class: (C,) float64, zero for one that has not come."""

    decay: float = 1.0
    """What a batch leaves of the weight before it: 1 counts all alike, less forgets."""

    @classmethod
    def of(cls, classes: int, decay: float = 1.0) -> Self:
        """Start with no class seen."""
        return cls(torch.zeros(classes, dtype=torch.float64), decay)

    def seen(self, labels: Tensor) -> "ClassFrequencies":
        """Return the frequencies after a batch, with room for labels beyond those known."""
        new = torch.bincount(labels, minlength=len(self.counts)).to(self.counts)
        new[: len(self.counts)] += self.decay * self.counts
        return ClassFrequencies(new, self.decay)

    def classes(self) -> Tensor:
        """Return the classes seen so far, sorted: (k,) int64."""
        return torch.nonzero(self.counts).squeeze(1)

    def log_priors(self, classes: Tensor) -> Tensor:
        """Return the log frequencies of `classes` among themselves: (k,) float32."""
        counts = self.counts.index_select(0, classes)
        return (counts / counts.sum()).log().float()
