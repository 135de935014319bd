"""Greedy balanced: as many samples of each class as of any other, first come, first kept.

The sampler of GDumb (Prabhu, Torr and Dokania, ECCV 2020). With K classes known, a class may have
⌊capacity / K⌋ samples. A sample of a new class, or of a class with fewer, is kept: in a free slot,
or else in place of a random sample of the largest class. All others are dropped.
"""

from collections.abc import Mapping
from typing import Any

import torch

from sterad.memory.held import Held
from sterad.memory.memory import MEMORIES
from sterad.streams import Batch


@MEMORIES.register("greedy-balanced")
class GreedyBalanced(Held):
    """Equal shares for all classes known; a large class gives way when a new one comes."""

    def __init__(self, capacity: int, rng: torch.Generator) -> None:
        """Hold at most `capacity` samples; `rng` decides which give way and which are drawn."""
        super().__init__(capacity, rng)
        self._labels = torch.full((capacity,), -1)
        self._counts: dict[int, int] = {}
        """Samples held of each class known, in order of first appearance; some may have none."""

    def __len__(self) -> int:
        return sum(self._counts.values())

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        if not len(batch):
            return
        self._columns.admit(batch)
        kept: dict[int, int] = {}  # position in the batch by slot: the last one for a slot stays
        for position, label in enumerate(batch.y.tolist()):
            if label not in self._counts or self._counts[label] < self._share():
                kept[self._slot_for(label)] = position
        self._columns.write(batch, kept)
        self.seen += len(batch)

    def _share(self) -> int:
        return self.capacity // max(1, len(self._counts))

    def _slot_for(self, label: int) -> int:
        """Return a free slot, or one that the largest class gives up, and count it to `label`."""
        slot = len(self)
        if slot == self.capacity:
            largest = max(self._counts, key=self._counts.__getitem__)
            theirs = torch.nonzero(self._labels == largest).squeeze(1)
            slot = int(theirs[torch.randint(len(theirs), (1,), generator=self._rng)])
            self._counts[largest] -= 1
        self._counts[label] = self._counts.get(label, 0) + 1
        self._labels[slot] = label
        return slot

    def state_dict(self) -> dict[str, Any]:
        """Return everything, also the classes known in order of first appearance."""
        known = torch.tensor(list(self._counts), dtype=torch.int64)
        return super().state_dict() | {"filled": len(self), "known": known}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue, bit for bit, where `state` was taken."""
        super().load_state_dict(state)
        filled = state["filled"]
        self._labels.fill_(-1)[:filled] = self._columns.labels(filled)
        self._counts = {
            label: int((self._labels == label).sum()) for label in state["known"].tolist()
        }

    def filled(self, state: Mapping[str, Any]) -> int:
        """Return how many samples a saved state must hold: it says so."""
        return int(state["filled"])
