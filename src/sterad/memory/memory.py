"""Memory: what a method may keep of the stream, and how it gets it back."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from sterad.registry import Registry
from sterad.streams import Batch


class Memory(Protocol):
    """A bounded set of past samples; methods sample first and update after."""

    @property
    def capacity(self) -> int:
        """The most samples it ever holds."""
        ...

    def __len__(self) -> int:
        """Return how many samples it holds."""
        ...

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order; the batch is neither changed nor kept."""
        ...

    def sample(self, n: int) -> Batch:
        """Return `n` distinct samples at random, or all in storage order when it holds fewer."""
        ...

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield all samples in storage order."""
        ...

    def class_counts(self, classes: int) -> Tensor:
        """Return how many samples of each class it holds: (classes,) int64."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides what comes next, as tensors, numbers and dicts."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue, bit for bit, where `state` was taken."""
        ...


MEMORIES: Registry[Callable[[int, torch.Generator], Memory]] = Registry("memory", "sterad.memories")
