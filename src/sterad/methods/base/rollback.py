"""Snapshot: what predicts while the next batches are learned, and where a failed call returns to.

A snapshot copies the network and its optimizer, but not the memory: a journal keeps the samples
that are overwritten later. So a snapshot costs as much as the network, whatever the capacity.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from sterad.memory import Memory, NoMemory, SlotMemory
from sterad.methods.base.encoded_memory import RollingFeatures
from sterad.methods.base.learner import Learner
from sterad.methods.base.replay import Replay


class RowJournal:
    """Rows of tensors as they were before they were first overwritten."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        """Watch no row yet."""
        self.tensors = list(tensors)
        self._slots: set[int] = set()
        self._rows: list[tuple[Tensor, Tensor, Tensor]] = []

    def record(self, slots: list[int]) -> None:
        """Copy the rows in `slots`, which are about to change, unless they are recorded."""
        new = [slot for slot in slots if slot not in self._slots]
        if not new:
            return
        index = torch.tensor(new)
        for tensor in self.tensors:
            inside = index[index < len(tensor)].to(tensor.device)
            self._rows.append((tensor, inside, tensor.index_select(0, inside)))
        self._slots.update(new)

    def undo(self) -> None:
        """Write the recorded rows back."""
        for tensor, index, rows in self._rows:
            tensor.index_copy_(0, index, rows)


class MemoryJournal:
    """Brings a memory back to the state of the moment in which the journal was created.

    The columns of a memory with slots are journaled by row and its other attributes are copied; the
    state of any other memory is copied completely.
    """

    def __init__(self, memory: Memory) -> None:
        """Begin to record what `memory` overwrites."""
        self.memory, self.state = memory, {}
        if not isinstance(memory, SlotMemory):
            self.state = deepcopy(memory.state_dict())
            return
        kept = {"_columns", "_rng", "watchers"}
        self.attributes = deepcopy({k: v for k, v in vars(memory).items() if k not in kept})
        self.columns, self.rng = dict(memory._columns), memory._rng.get_state()
        self.rows = RowJournal([*self.columns.values()])
        memory.watchers.append(self.record)
        self.watchers = list(memory.watchers)

    def record(self, slots: list[int]) -> None:
        """Copy the samples in `slots`, which are about to change."""
        self.rows.record(slots)

    def undo(self) -> None:
        """Restore the memory; an interrupted call may be repeated."""
        memory = self.memory
        if not isinstance(memory, SlotMemory):
            memory.load_state_dict(deepcopy(self.state))
            return
        self.rows.undo()
        memory._columns = dict(self.columns)
        vars(memory).update(deepcopy(self.attributes))
        memory._rng.set_state(self.rng)
        memory.watchers[:] = self.watchers  # those of later snapshots are not needed any more

    def close(self) -> None:
        """Record no longer."""
        if isinstance(self.memory, SlotMemory) and self.record in self.memory.watchers:
            self.memory.watchers.remove(self.record)


class FeatureJournal:
    """Brings the features of a memory back to the moment in which the journal was created."""

    def __init__(self, cache: RollingFeatures) -> None:
        """Begin to record which features are replaced."""
        self.cache, self.features = cache, cache.features
        self.tables = {name: table.clone() for name, table in cache.tables.items()}
        self.step = cache.step
        self.rows = RowJournal([cache.features])
        cache.watchers.append(self.record)
        self.watchers = list(cache.watchers)

    def record(self, slots: list[int]) -> None:
        """Copy the features in `slots`, which are about to change."""
        self.rows.record(slots)

    def undo(self) -> None:
        """Restore the features; an interrupted call may be repeated."""
        self.rows.undo()
        cache = self.cache
        cache.features, cache.step = self.features, self.step
        cache.tables = {name: table.clone() for name, table in self.tables.items()}
        cache.changed, cache.watchers[:] = {}, self.watchers

    def close(self) -> None:
        """Record no longer."""
        if self.record in self.cache.watchers:
            self.cache.watchers.remove(self.record)


class Snapshot:
    """The complete state of a learner at one moment; `restore` returns a learner in that state.

    `close` it when it is not needed any more, so that nothing is recorded for it.
    """

    def __init__(self, learner: Learner) -> None:
        """Copy the state but for the memory, whose changes are recorded from now on."""
        self.replay = replay_of(learner)
        self.journals: list[MemoryJournal | FeatureJournal] = []
        if self.replay is None:
            self.copy = learner.fork()
            return
        self.memory, self.encoded = self.replay.memory, self.replay.encoded_memory
        self.journals.append(MemoryJournal(self.memory))
        if self.encoded.rolling is not None:
            self.journals.append(FeatureJournal(self.encoded.rolling))
        with _without_memory(self.replay):
            self.state: dict[str, Any] = _copied(learner.state_dict())

    def restore(self, build: Callable[[], Learner]) -> Learner:
        """Return a learner in the state of the snapshot, made by `build`; the memory is reused."""
        if self.replay is None:
            return self.copy.fork()
        for journal in self.journals:
            journal.undo()
        learner = build()
        replay = replay_of(learner)
        assert replay is not None
        with _without_memory(replay):
            learner.load_state_dict(_copied(self.state))
        replay.memory, replay.encoded_memory = self.memory, self.encoded
        replay.parts = replace(replay.parts, memory=self.memory)
        return learner

    def close(self) -> None:
        """Record no longer what the memory overwrites."""
        for journal in self.journals:
            journal.close()


def replay_of(learner: Learner) -> Replay | None:
    """Return the learner itself, or the one inside a wrapper, if it is a replay method."""
    inner = getattr(learner, "inner", learner)
    return inner if isinstance(inner, Replay) else None


@contextmanager
def _without_memory(replay: Replay) -> Iterator[None]:
    """Take the memory out of a learner, so that its state does not contain it."""
    memory = replay.memory
    replay.memory = NoMemory()
    try:
        yield
    finally:
        replay.memory = memory


def _copied(value: Any) -> Any:
    """Return a copy of nested containers with copies of all tensors."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_copied, value))
    return deepcopy(value)
