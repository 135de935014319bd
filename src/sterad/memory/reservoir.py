"""Reservoir: every sample of the stream so far is stored with the same probability.

Algorithm R of J. S. Vitter, "Random Sampling with a Reservoir", ACM Trans. Math. Softw. 11(1),
1985, https://doi.org/10.1145/3147.3165: sample number n, counted from 0, goes to the next free
slot while there is one; after that, to slot floor(U (n + 1)) if that is below the capacity.
"""

import torch

from sterad.memory.memory import MEMORIES, SlotMemory
from sterad.streams import Batch


@MEMORIES.register("reservoir")
class Reservoir(SlotMemory):
    """A uniform random sample of all samples offered so far."""

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        if not len(batch):
            return
        self.columns.prepare(batch)
        uniform = torch.rand(len(batch), generator=self._rng, dtype=torch.float64).tolist()
        kept: dict[int, int] = {}  # slot -> position in the batch; a later sample overwrites
        for position, (number, u) in enumerate(enumerate(uniform, start=self.seen)):
            slot = number if number < self.capacity else int(u * (number + 1))
            if slot < self.capacity:
                kept[slot] = position
        self.columns.write(batch, kept)
        self.seen += len(batch)
