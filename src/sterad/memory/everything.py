"""Everything: the memory of the upper bound, which keeps every sample and has no capacity.

It is exempt from the number of images that a method may keep, so it is not in the table of
memories: no method that is compared with others at equal memory may use it. Images lie as bytes.
Room doubles when it runs out, so that a sample is moved once on average, however long the stream.
"""

from collections.abc import Mapping
from typing import Any

import torch

from sterad.memory.held import Held
from sterad.streams import Batch


class Everything(Held):
    """All samples in the order in which they came; `capacity` is the room so far."""

    def __init__(self, rng: torch.Generator, room: int = 1024) -> None:
        """Make room for the first samples; `rng` decides which are drawn."""
        super().__init__(room, rng)

    def __len__(self) -> int:
        return self.seen

    def update(self, batch: Batch) -> None:
        """Keep each sample of `batch`."""
        if not len(batch):
            return
        self._columns.admit(batch)
        while self.capacity < self.seen + len(batch):
            self.capacity *= 2
        if self.capacity > self._columns.capacity:
            self._columns.grow(self.capacity)
        self._columns.write(batch, {self.seen + at: at for at in range(len(batch))})
        self.seen += len(batch)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue, bit for bit, where `state` was taken, with as much room."""
        if "capacity" in state:
            self.capacity = self._columns.capacity = state["capacity"]
        super().load_state_dict(state)
