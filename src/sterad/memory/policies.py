"""The memory policies: reservoir, greedy-balanced, none (fine-tuning), everything (joint training).

The last two, of baselines, do not respect the capacity that other methods are compared at.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from sterad.memory.memory import MEMORIES, SlotMemory
from sterad.saved_state import check_count, check_labels
from sterad.streams import Batch


@MEMORIES.register("reservoir")
class Reservoir(SlotMemory):
    """A uniform random sample of all samples offered so far.

    Algorithm R of J. S. Vitter, "Random Sampling with a Reservoir", ACM Trans. Math. Softw. 11(1),
    1985, https://doi.org/10.1145/3147.3165: sample number n, counted from 0, goes to the next free
    slot while there is one; after that, to slot floor(U (n + 1)) if that is below the capacity.
    """

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        self.prepare(batch)
        uniform = torch.rand(len(batch), generator=self._rng, dtype=torch.float64).tolist()
        kept: dict[int, int] = {}  # slot -> position in the batch; a later sample overwrites
        for position, (number, u) in enumerate(enumerate(uniform, start=self.seen)):
            slot = number if number < self.capacity else int(u * (number + 1))
            if slot < self.capacity:
                kept[slot] = position
        self.write(batch, kept)
        self.seen += len(batch)


@MEMORIES.register("greedy-balanced")
class GreedyBalanced(SlotMemory):
    """Equal quotas for all known classes; new classes replace samples of the largest one.

    The sampler of GDumb (Prabhu, Torr and Dokania, ECCV 2020). With K known classes, the quota of a
    class is ⌊capacity / K⌋ samples. A sample of a new class, or of a class below its quota, is
    stored: in a free slot, or else in place of a random sample of the largest class. All others are
    discarded.
    """

    def __init__(self, capacity: int, rng: torch.Generator | None = None) -> None:
        """Hold at most `capacity` samples; `rng` draws which are replaced and which are sampled."""
        super().__init__(capacity, rng)
        self._labels = torch.full((capacity,), -1)
        self._counts: dict[int, int] = {}
        """Number of samples of each known class, in order of first appearance; may be 0."""

    def __len__(self) -> int:
        return sum(self._counts.values())

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        self.prepare(batch)
        kept: dict[int, int] = {}  # slot -> position in the batch; a later sample overwrites
        for position, label in enumerate(batch.y.tolist()):
            known = self._counts
            if label not in known or known[label] < self.capacity // len(known):
                kept[self._slot_for(label)] = position
        self.write(batch, kept)
        self.seen += len(batch)

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
        check_labels(state["known"].sort().values, "known")
        labels: Tensor = state["columns"].get("y", torch.empty(0))
        self._labels.fill_(-1)[: len(labels)] = labels
        self._counts = {
            label: int((self._labels == label).sum()) for label in state["known"].tolist()
        }

    def filled(self, state: Mapping[str, Any]) -> int:
        """Return the number of samples that a saved state must hold."""
        check_count(state["filled"], "filled")
        return int(state["filled"])


@MEMORIES.register("everything")
class Everything(SlotMemory):
    """Stores all samples in their order; `capacity` is the space allocated so far.

    The capacity doubles when it is used up, so that a sample is copied about once on average.
    """

    is_bounded: ClassVar[bool] = False

    def __init__(self, capacity: int = 1, rng: torch.Generator | None = None) -> None:
        """Allocate space for `capacity` samples at first; `rng` draws the samples."""
        super().__init__(max(capacity, 1), rng)

    def __len__(self) -> int:
        return self.seen

    def update(self, batch: Batch) -> None:
        """Store each sample of `batch`."""
        self.prepare(batch)
        size = self.seen + len(batch)
        if size > self.capacity:
            while size > self.capacity:
                self.capacity *= 2
            self._allocate(self._layout)
        self.write(batch, {self.seen + at: at for at in range(len(batch))})
        self.seen += len(batch)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, with the saved capacity."""
        if "capacity" in state:
            check_count(state["capacity"], "capacity")
            # A wrong number could take all memory.
            if state["capacity"] > max(self.capacity, 2 * state["seen"]):
                raise ValueError(f"{state['seen']} samples never need {state['capacity']} slots")
            self.capacity = state["capacity"]
        super().load_state_dict(state)


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
