"""Memory policies that know the slots of each class: class-balanced and ring."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from sterad.memory.memory import MEMORIES, SlotMemory
from sterad.saved_state import check_count, check_labels
from sterad.streams import Batch


class ClassSlots:
    """The slots of each class, oldest first, and the classes of each size.

    Every operation takes constant time, whatever the number of slots and classes.
    """

    def __init__(self) -> None:
        """Hold no class."""
        self.slots: dict[int, deque[int]] = {}
        self.largest_size = 0
        self._classes_of: dict[int, dict[int, None]] = {0: {}}
        """Classes by their size, in the order in which they reached it."""

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def largest(self) -> Iterable[int]:
        """The classes with the most slots."""
        return self._classes_of[self.largest_size]

    def size(self, label: int) -> int:
        """Return the number of slots of a class, 0 if it is not known."""
        return len(self.slots.get(label, ()))

    def make_known(self, label: int) -> None:
        """Add a class without slots, if it is not known yet."""
        if label not in self.slots:
            self.slots[label] = deque()
            self._classes_of[0][label] = None

    def add(self, label: int, slot: int) -> None:
        """Append a slot to a known class."""
        self.slots[label].append(slot)
        self._move(label, -1)
        self.largest_size = max(self.largest_size, self.size(label))

    def remove_oldest(self, label: int) -> int:
        """Remove and return the slot of the oldest sample of a class."""
        slot = self.slots[label].popleft()
        self._move(label, 1)
        return slot

    def remove_at(self, label: int, position: int) -> int:
        """Remove and return the slot at a position; the newest sample takes its position."""
        slots = self.slots[label]
        slots[position], slots[-1] = slots[-1], slots[position]
        slot = slots.pop()
        self._move(label, 1)
        return slot

    def _move(self, label: int, removed: int) -> None:
        """Update the classes of each size after a class has lost `removed` slots."""
        size = self.size(label)
        del self._classes_of[size + removed][label]
        self._classes_of.setdefault(size, {})[label] = None
        if not self._classes_of[self.largest_size] and self.largest_size == size + removed:
            self.largest_size = size

    def state_dict(self) -> dict[str, Tensor]:
        """Return the classes, by size and then in their order, and the slots of each."""
        sizes = sorted(self._classes_of)
        labels = [label for size in sizes for label in self._classes_of[size]]
        return {
            "known": torch.tensor(labels, dtype=torch.int64),
            "order": torch.tensor([s for c in labels for s in self.slots[c]], dtype=torch.int64),
        }

    @classmethod
    def load(cls, state: Mapping[str, Any], labels: Tensor) -> "ClassSlots":
        """Return the slots of `state_dict()`; labels: (n,), those of the stored samples."""
        known, order = state["known"], state["order"]
        check_labels(known.sort().values, "known")
        check_labels(order.sort().values, "order")
        if len(order) != len(labels) or not bool(torch.isin(labels, known).all()):
            raise ValueError("order and known must list the slots and classes of all samples")
        if len(order) and int(order.max()) >= len(order):
            raise ValueError(f"order must list the slots from 0 to {len(order) - 1}")
        loaded = cls()
        slots_of: dict[int, list[int]] = {label: [] for label in known.tolist()}
        for slot, label in zip(order.tolist(), labels[order].tolist(), strict=True):
            slots_of[label].append(slot)
        for label, slots in slots_of.items():
            loaded.make_known(label)
            for slot in slots:
                loaded.add(label, slot)
        return loaded


class _ByClass(SlotMemory):
    """A memory that finds the slots of a class in constant time."""

    def __init__(self, capacity: int, rng: torch.Generator | None = None) -> None:
        """Hold at most `capacity` samples; `rng` draws which are kept and which are sampled."""
        super().__init__(capacity, rng)
        self._classes = ClassSlots()
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    def take_free_slot(self) -> int:
        """Return the next free slot and count it as filled."""
        self._filled += 1
        return self._filled - 1

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the slots of each class."""
        return super().state_dict() | {"filled": self._filled} | self._classes.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, so that all later results are equal."""
        super().load_state_dict(state)
        labels = state["columns"].get("y", torch.empty(0, dtype=torch.int64))
        self._filled = state["filled"]
        self._classes = ClassSlots.load(state, labels)

    def filled(self, state: Mapping[str, Any]) -> int:
        """Return the number of samples that a saved state must hold."""
        check_count(state["filled"], "filled")
        if state["filled"] > self.capacity:
            raise ValueError(f"filled is {state['filled']} and the capacity {self.capacity}")
        return int(state["filled"])


@MEMORIES.register("class-balanced")
class ClassBalanced(_ByClass):
    """As equal numbers of each class as the stream allows, each class a uniform sample of its own.

    The class-balancing reservoir of A. Chrysakis and M.-F. Moens, "Online Continual Learning from
    Imbalanced Data", ICML 2020. While there is a free slot, every sample is stored. After that, a
    sample of a class that is not among the largest, and never was, replaces a random sample of a
    largest class. A sample of any other class c replaces a random one of its own class with
    probability m / n, m stored and n offered samples of c.

    >>> memory = ClassBalanced(4)
    >>> memory.update(Batch(torch.rand(6, 3), torch.tensor([0, 0, 0, 0, 1, 1])))
    >>> memory.class_counts(2)
    tensor([2, 2])
    """

    def __init__(self, capacity: int, rng: torch.Generator | None = None) -> None:
        """Hold at most `capacity` samples; `rng` draws which are kept and which are sampled."""
        super().__init__(capacity, rng)
        self._offered: dict[int, int] = {}
        """Number of samples offered of each class."""
        self._were_largest: set[int] = set()
        """Classes that were among the largest of a full memory and may not be any more."""

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        self.prepare(batch)
        draws = torch.rand((len(batch), 2), generator=self._rng, dtype=torch.float64).tolist()
        kept: dict[int, int] = {}  # slot -> position in the batch; a later sample overwrites
        for position, (label, draw) in enumerate(zip(batch.y.tolist(), draws, strict=True)):
            self._classes.make_known(label)
            self._offered[label] = self._offered.get(label, 0) + 1
            slot = self._find_slot(label, *draw)
            if slot is not None:
                self._classes.add(label, slot)
                kept[slot] = position
        self.write(batch, kept)
        self.seen += len(batch)

    def _find_slot(self, label: int, first: float, second: float) -> int | None:
        """Return a free slot, or one whose sample is removed; None if the new one is discarded.

        first, second: two uniform draws.
        """
        classes = self._classes
        if self._filled < self.capacity:
            return self.take_free_slot()
        victim = label
        # Sizes of these classes never grow again, so that others need a mark only when they shrink.
        if classes.size(label) == classes.largest_size:
            self._were_largest.add(label)
        if label not in self._were_largest:
            victim = next(iter(classes.largest))
            self._were_largest.add(victim)
        elif first * self._offered[label] >= classes.size(label):
            return None
        return classes.remove_at(victim, int(second * classes.size(victim)))

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the number of samples offered of each class."""
        state = super().state_dict()
        labels = state["known"].tolist()
        state["offered"] = torch.tensor([self._offered[c] for c in labels], dtype=torch.int64)
        state["were_largest"] = torch.tensor(sorted(self._were_largest), dtype=torch.int64)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, so that all later results are equal."""
        super().load_state_dict(state)
        check_labels(state["were_largest"], "were_largest")
        counts = state["offered"].tolist()
        if len(counts) != len(state["known"]) or sum(counts) != self.seen:
            raise ValueError("offered must count all samples, one number for each known class")
        self._offered = dict(zip(state["known"].tolist(), counts, strict=True))
        self._were_largest = set(state["were_largest"].tolist())


@MEMORIES.register("ring")
class Ring(_ByClass):
    """The newest samples of each class: first in, first out within equal quotas.

    With K known classes, the quota of a class is ⌊capacity / K⌋ samples, at least one. A sample of
    a class below its quota goes to a free slot or, in a full memory, replaces the oldest sample of
    the largest class; a sample of any other class replaces the oldest one of its own. Quotas
    shrink with each new class, and samples above them go when others need their slots.

    >>> memory = Ring(4)
    >>> memory.update(Batch(torch.arange(7.0).view(7, 1), torch.tensor([0, 0, 0, 0, 0, 1, 1])))
    >>> sorted(next(memory.everything()).x.flatten().tolist())
    [3.0, 4.0, 5.0, 6.0]
    """

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        self.prepare(batch)
        kept: dict[int, int] = {}  # slot -> position in the batch; a later sample overwrites
        for position, label in enumerate(batch.y.tolist()):
            self._classes.make_known(label)
            slot = self._find_slot(label)
            self._classes.add(label, slot)
            kept[slot] = position
        self.write(batch, kept)
        self.seen += len(batch)

    def _find_slot(self, label: int) -> int:
        """Return a free slot, or one whose sample is removed."""
        classes = self._classes
        if classes.size(label) >= max(1, self.capacity // len(classes)):
            return classes.remove_oldest(label)
        if self._filled < self.capacity:
            return self.take_free_slot()
        return classes.remove_oldest(next(iter(classes.largest)))
