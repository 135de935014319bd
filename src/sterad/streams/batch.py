"""Batch and Boundary, the two events of a stream, and the pixel formats of images."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.errors import SteradError

MAX_PIXEL = torch.tensor(255.0, dtype=torch.float32, device="cpu")
"""A tensor, because dividing by a Python number allocates a new tensor at every call."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Inputs and their labels."""

    x: Tensor
    """Images (n, c, h, w) float32 in [0, 1], or feature vectors (n, d) float32."""
    y: Tensor
    """Labels (n,) int64."""
    extra: Mapping[str, Tensor] = field(default_factory=dict)
    """Named columns (n, ...) that a method stores with the inputs."""

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
    def concatenate(first: "Batch", second: "Batch") -> "Batch":
        """Return the inputs and labels of both batches, `first` before `second`, without extras."""
        if not len(first):  # a batch from an empty memory has no input shape
            return Batch(second.x, second.y)
        return Batch(torch.cat([first.x, second.x]), torch.cat([first.y, second.y]))

    def to(self, device: str | torch.device) -> "Batch":
        """Return the batch on `device`."""
        extra = {name: to_device(column, device) for name, column in self.extra.items()}
        return Batch(to_device(self.x, device), to_device(self.y, device), extra)


@dataclass(frozen=True)
class Boundary:
    """The announced end of a task; most streams announce none."""

    task: int
    """Index of the task that has ended, from 0."""
    step: int
    """Number of batches of the stream so far."""


def to_unit(inputs: Tensor) -> Tensor:
    """Return uint8 pixels as float32 in [0, 1]; return other inputs unchanged.

    >>> to_unit(torch.tensor([0, 51, 255], dtype=torch.uint8))
    tensor([0.0000, 0.2000, 1.0000])
    """
    return inputs.float().div_(MAX_PIXEL) if inputs.dtype == torch.uint8 else inputs


def to_bytes(images: Tensor) -> Tensor:
    """Return images in [0, 1] as uint8, rounded; this inverts `to_unit` exactly.

    >>> to_bytes(torch.tensor([0.0, 0.2, 1.0]))
    tensor([  0,  51, 255], dtype=torch.uint8)
    """
    return images.mul(255).round_().clamp_(0, 255).to(torch.uint8)
