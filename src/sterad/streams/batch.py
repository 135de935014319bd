"""Batch and Boundary: the two events of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.errors import SteradError


@dataclass(frozen=True, eq=False)
class Batch:
    """Some inputs with their labels."""

    x: Tensor
    """Images (n, c, h, w) float32 in [0, 1], or feature vectors (n, d) float32."""
    y: Tensor
    """Labels (n,) int64."""
    extra: Mapping[str, Tensor] = field(default_factory=dict)
    """Named columns (n, ...) that a method keeps beside the inputs."""

    def __post_init__(self) -> None:
        for name, column in (("labels", self.y), *self.extra.items()):
            if len(column) != len(self.x):
                raise SteradError(
                    f"a batch has {len(self.x)} inputs and {len(column)} {name}: "
                    "give one for each input"
                )

    def __len__(self) -> int:
        return len(self.y)

    @staticmethod
    def joined(first: "Batch", second: "Batch") -> "Batch":
        """Return the inputs and labels of both, `first` in front; extra columns are left out."""
        if not len(first):  # an empty memory does not know the shape of its inputs
            return Batch(second.x, second.y)
        return Batch(torch.cat([first.x, second.x]), torch.cat([first.y, second.y]))

    def to(self, device: str | torch.device) -> "Batch":
        """Return the batch on `device`."""
        extra = {name: to_device(column, device) for name, column in self.extra.items()}
        return Batch(to_device(self.x, device), to_device(self.y, device), extra)


@dataclass(frozen=True)
class Boundary:
    """The end of a task, announced; on many streams it never comes."""

    task: int
    """The task that has ended, counted from 0."""
    step: int
    """Batches of the stream so far."""
