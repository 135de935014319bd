"""GreedyBalanced: equal numbers of samples of all classes, stored in order of arrival.

The sampler of GDumb (Prabhu, Torr and Dokania, ECCV 2020). With K known classes, the quota of a
class is ⌊capacity / K⌋ samples. A sample of a new class, or of a class below its quota, is stored:
in a free slot, or else in place of a random sample of the largest class. All others are discarded.
"""

from collections.abc import Mapping
from typing import Any

import torch

from sterad.memory.memory import MEMORIES, SlotMemory
from sterad.streams import Batch


@MEMORIES.register("greedy-balanced")
class GreedyBalanced(SlotMemory):
    """Equal quotas for all known classes; new classes replace samples of the largest one."""

    def __init__(self, capacity: int, rng: torch.Generator) -> None:
        """Hold at most `capacity` samples; `rng` draws which are replaced and which are sampled."""
        super().__init__(capacity, rng)
        self._labels = torch.full((capacity,), -1)
        self._counts: dict[int, int] = {}
        """Number of samples of each known class, in order of first appearance; may be 0."""

    def __len__(self) -> int:
        return sum(self._counts.values())

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        if not len(batch):
            return
        self.columns.prepare(batch)
        kept: dict[int, int] = {}  # slot -> position in the batch; a later sample overwrites
        for position, label in enumerate(batch.y.tolist()):
            if label not in self._counts or self._counts[label] < self._quota():
                kept[self._slot_for(label)] = position
        self.columns.write(batch, kept)
        self.seen += len(batch)

    def _quota(self) -> int:
        return self.capacity // max(1, len(self._counts))

    def _slot_for(self, label: int) -> int:
        """Return a free slot, or one of the largest class, and assign it to `label`."""
        slot = len(self)
        if slot == self.capacity:
            largest = max(self._counts, key=self._counts.__getitem__)
            candidates = torch.nonzero(self._labels == largest).squeeze(1)
            slot = int(candidates[torch.randint(len(candidates), (1,), generator=self._rng)])
            self._counts[largest] -= 1
        self._counts[label] = self._counts.get(label, 0) + 1
        self._labels[slot] = label
        return slot

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the known classes in order of first appearance."""
        known = torch.tensor(list(self._counts), dtype=torch.int64)
        return super().state_dict() | {"filled": len(self), "known": known}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, so that all later results are equal."""
        super().load_state_dict(state)
        filled = state["filled"]
        self._labels.fill_(-1)[:filled] = self.columns.labels(filled)
        self._counts = {
            label: int((self._labels == label).sum()) for label in state["known"].tolist()
        }

    def filled(self, state: Mapping[str, Any]) -> int:
        """Return the number of samples that a saved state must hold."""
        return int(state["filled"])
