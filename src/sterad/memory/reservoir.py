"""Reservoir: every sample of the stream so far is in memory with the same probability.

Algorithm R of J. S. Vitter, "Random Sampling with a Reservoir", ACM Trans. Math. Softw. 11(1),
1985, https://doi.org/10.1145/3147.3165: sample number n, counted from 0, goes to the next free
slot while there is one, and then to slot floor(U (n + 1)), if there is such a slot.
"""

import torch

from sterad.memory.held import Held
from sterad.memory.memory import MEMORIES
from sterad.streams import Batch


@MEMORIES.register("reservoir")
class Reservoir(Held):
    """A uniform sample of all that was offered."""

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        if not len(batch):
            return
        self._columns.admit(batch)
        uniform = torch.rand(len(batch), generator=self._rng, dtype=torch.float64).tolist()
        kept: dict[int, int] = {}  # position in the batch by slot: the last one for a slot stays
        for position, (number, u) in enumerate(enumerate(uniform, start=self.seen)):
            slot = number if number < self.capacity else int(u * (number + 1))
            if slot < self.capacity:
                kept[slot] = position
        self._columns.write(batch, kept)
        self.seen += len(batch)
