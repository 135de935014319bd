"""The memories of the two baselines: none for fine-tuning, all samples for joint training.

Neither respects the capacity that other methods are compared at.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from sterad.memory.memory import MEMORIES, SlotMemory
from sterad.streams import Batch


@MEMORIES.register("none")
class NoMemory:
    """Stores nothing, so that methods without replay need no special case."""

    capacity = 0

    def __init__(self, capacity: int = 0, rng: torch.Generator | None = None) -> None:
        """Ignore the capacity: nothing is stored."""

    def __len__(self) -> int:
        return 0

    def update(self, batch: Batch) -> None:
        """Discard the batch."""

    def sample(self, n: int) -> Batch:
        """Return an empty batch."""
        return Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield no batch."""
        return iter(())

    def class_counts(self, classes: int) -> Tensor:
        """Return zeros: (classes,) int64."""
        return torch.zeros(classes, dtype=torch.int64)

    def state_dict(self) -> dict[str, Any]:
        """Return an empty dictionary."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Do nothing: there is no state."""


@MEMORIES.register("everything")
class Everything(SlotMemory):
    """Stores all samples in their order; `capacity` is the space allocated so far.

    The capacity doubles when it is used up, so that a sample is copied about once on average.
    """

    def __init__(self, capacity: int, rng: torch.Generator) -> None:
        """Allocate space for `capacity` samples at first; `rng` draws the samples."""
        super().__init__(max(capacity, 1), rng)

    def __len__(self) -> int:
        return self.seen

    def update(self, batch: Batch) -> None:
        """Store each sample of `batch`."""
        if not len(batch):
            return
        self.columns.prepare(batch)
        while self.capacity < self.seen + len(batch):
            self.capacity *= 2
        if self.capacity > self.columns.capacity:
            self.columns.grow(self.capacity)
        self.columns.write(batch, {self.seen + at: at for at in range(len(batch))})
        self.seen += len(batch)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, with the saved capacity."""
        if "capacity" in state:
            self.capacity = self.columns.capacity = state["capacity"]
        super().load_state_dict(state)
