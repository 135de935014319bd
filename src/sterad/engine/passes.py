"""Passes: how many images of which size went through a network, and what that takes.

A pass is counted where a tensor enters the network, so that views of a lower resolution count with
their own pixels. Multiply-adds are measured afterwards, once per network and shape of the images.
"""

import math
from collections import Counter
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from sterad.encoders import Network
from sterad.encoders.inputs import InputTransform
from sterad.saved_state import check_count

Shape = tuple[int, ...]
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED_CONVOLUTIONS = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


class Passes:
    """Images that were passed through a network in training, by the shape of one image."""

    def __init__(self) -> None:
        """Start without a pass."""
        self.trained = Counter[Shape]()
        """Images that were passed forward and backward."""
        self.forward_only = Counter[Shape]()
        """Images that were passed forward without gradients, as by a teacher."""
        self.is_complete = True
        """Whether every pass was counted; not after a checkpoint of a version without counts."""

    @property
    def images(self) -> int:
        """Images of all passes."""
        return self.trained.total() + self.forward_only.total()

    def count(self, x: Tensor, backward: bool, times: int = 1) -> None:
        """Count passes of a batch x: (n, ...)."""
        counts = self.trained if backward else self.forward_only
        counts[x.shape[1:]] += times * len(x)

    def add(self, other: "Passes") -> None:
        """Add the counts of other passes."""
        self.trained.update(other.trained)
        self.forward_only.update(other.forward_only)
        self.is_complete &= other.is_complete

    def pixels(self, network: Network) -> tuple[int, int]:
        """Return the pixels of passes with and without a backward pass: see `pixels_of`."""
        trained, forward_only = (
            sum(images * pixels_of(network, shape) for shape, images in counts.items())
            for counts in (self.trained, self.forward_only)
        )
        return trained, forward_only

    def multiply_adds(self, network: Network) -> float:
        """Return the multiply-adds of all passes; a backward pass has twice those of a forward."""
        images = self.trained.copy()
        for counts in (self.trained, self.trained, self.forward_only):
            images.update(counts)
        total = sum(n * multiply_adds(network, shape) for shape, n in images.items())
        return total / network.members  # one pass is counted once for each of them

    def state_dict(self) -> dict[str, Any] | None:
        """Return the counts as lists of (shape, images); None if passes are missing."""
        if not self.is_complete:
            return None
        both = {"trained": self.trained, "forward_only": self.forward_only}
        return {name: [[list(k), n] for k, n in one.items()] for name, one in both.items()}

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Restore the counts; None is the state of a version that did not count."""
        read = {} if state is None else {name: _read_counts(one) for name, one in state.items()}
        self.is_complete = state is not None
        self.trained = read.get("trained", Counter())
        self.forward_only = read.get("forward_only", Counter())


def _read_counts(pairs: list[Any]) -> Counter[Shape]:
    counts = Counter[Shape]()
    for shape, images in pairs:
        for size in (*shape, images):
            check_count(size, "a size or count of passes")
        counts[tuple(shape)] = images
    return counts


def pixels_of(network: Network, shape: Shape) -> int:
    """Return the pixels of one input as the network computes it; a feature vector is one pixel.

    A network whose encoder resizes its inputs computes as many pixels as these have afterwards.
    """
    for layer in network.modules():
        if isinstance(layer, InputTransform) and layer.size is not None:
            return math.prod(layer.size)
    return math.prod(shape[1:])


def multiply_adds(network: nn.Module, shape: Shape) -> int:
    """Return the multiply-adds of convolutions and linear layers for one input of a shape.

    Measured by a forward pass of a copy in evaluation mode. Products inside an attention, and
    functions that are no layers, are not counted.

    >>> multiply_adds(nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU()), (3, 4, 4))
    2160
    """
    copy, total = deepcopy(network).eval(), 0

    def add(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        positions = inputs[0] if isinstance(layer, TRANSPOSED_CONVOLUTIONS) else output
        total += positions.numel() * layer.weight[0].numel()

    for layer in copy.modules():
        if isinstance(layer, (*CONVOLUTIONS, *TRANSPOSED_CONVOLUTIONS, nn.Linear)):
            layer.register_forward_hook(add)
    device = next((one.device for one in copy.parameters()), None)
    with torch.random.fork_rng([]), torch.no_grad():
        copy(torch.zeros(1, *shape, device=device))
    return total
