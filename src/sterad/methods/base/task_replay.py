"""TaskReplay: replay that knows the task of each stored sample and the classes of its own task.

The memory keeps the task of each sample in the extra column `task`. Tasks are counted at announced
boundaries, or at detected ones: see `boundaries`. In streams whose tasks share classes, a class is
new only in the first task that has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.memory import MemorySubset, SlotMemory
from sterad.memory.checks import retrieve_checked
from sterad.memory.retrieval import take
from sterad.methods.base.boundaries import BoundaryConfig
from sterad.methods.base.interference import loss_rise
from sterad.methods.base.learner import Problem
from sterad.methods.base.parts import Parts, ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.saved_state import check_count, check_labels, check_like
from sterad.streams import Batch


@dataclass(frozen=True)
class TaskReplayConfig(BoundaryConfig, ReplayConfig):
    """The fields of a method that tells the current task from earlier ones."""


class TaskReplay(Replay):
    """Replays samples of the current task and of earlier tasks separately."""

    config: TaskReplayConfig
    published_views: ClassVar[Mapping[str, Any]] = {}
    """Values of augmentation=full that the paper uses, where the config leaves them open."""

    def __init__(self, config: TaskReplayConfig, problem: Problem, parts: Parts) -> None:
        """Start in the first task; refuse a memory that keeps no further column."""
        if not isinstance(parts.memory, SlotMemory):
            raise SteradError(
                f"{type(self).__name__} keeps the task of each sample in a column of the memory, "
                f"and {type(parts.memory).__name__} has none: extend SlotMemory, or use "
                "memory_policy=reservoir"
            )
        super().__init__(config, problem, parts)
        self.old = torch.zeros(0, dtype=torch.int64)
        """Classes seen before the current task."""
        self.task_classes = self.old
        """Classes seen in the current task, ascending."""
        self.task_batches = 0
        """Batches of the current task so far."""

    @classmethod
    def default_parts(cls, config: Any, problem: Problem) -> Parts:
        """Return the parts that the config names; views are those of the method's paper."""
        values = {k: v for k, v in cls.published_views.items() if getattr(config, k) is None}
        filled = replace(config, **values) if config.augmentation == "full" else config
        return super().default_parts(filled, problem)

    @property
    def task(self) -> int:
        """Number of the current task, from 0."""
        assert self.tasks is not None
        return self.tasks.finished

    def count_new(self, n: int) -> int:
        """Return ⌊n · new classes / all seen classes⌋."""
        return n * (len(self.seen) - len(self.old)) // max(len(self.seen), 1)

    def count_old(self, n: int) -> int:
        """Return ⌊n · classes of earlier tasks / all seen classes⌋."""
        return n * len(self.old) // max(len(self.seen), 1)

    def classes_with(self, labels: Tensor) -> Tensor:
        """Return the classes of the current task on the device, and those among `labels`.

        labels: on the CPU. Those of a review are of any task.
        """
        return self.engine.to_device(torch.cat([self.task_classes, labels]).unique())

    def see(self, batch: Batch) -> None:
        """Check a batch, detect a new task and note the classes of the current one."""
        super().see(batch)
        self.task_classes = torch.cat([self.task_classes, batch.y]).unique()
        self.task_batches += 1

    def end_task(self) -> None:
        """Start the next task."""
        self.old, self.task_classes = self.seen, self.seen[:0]
        self.task_batches = 0

    def draw_current(self, n: int, batch: Batch) -> Batch:
        """Return at most `n` samples of the current task, chosen by the retrieval."""
        return self._draw_from(self._stored_tasks() == self.task, n, batch)

    def draw_earlier(self, n: int, batch: Batch) -> Batch:
        """Return at most `n` samples of earlier tasks, chosen by the retrieval."""
        return self._draw_from(self._stored_tasks() < self.task, n, batch)

    def split_tasks(self, retrieved: Batch) -> tuple[Batch, Batch]:
        """Return the retrieved samples of the current task and those of earlier tasks."""
        if not len(retrieved):
            return retrieved, retrieved
        is_current = retrieved.extra["task"] == self.task
        current, earlier = (one.nonzero().squeeze(1) for one in (is_current, ~is_current))
        return take(retrieved, current), take(retrieved, earlier)

    def remember(self, batch: Batch) -> None:
        """Offer the raw stream batch with its task to the memory."""
        task = torch.full((len(batch),), self.task)
        self.memory.update(Batch(batch.x, batch.y, {**batch.extra, "task": task}))

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the classes of the current and of earlier tasks."""
        classes = {"old": self.old, "task_classes": self.task_classes}
        return super().state_dict() | classes | {"task_batches": self.task_batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        if columns := state["memory"].get("columns"):
            check_like(columns["task"], columns["y"], "memory.task")
        check_labels(state["old"], "old")
        check_labels(state["task_classes"], "task_classes")
        check_count(state["task_batches"], "task_batches")
        super().load_state_dict(state)
        self.old, self.task_classes = state["old"], state["task_classes"]
        self.task_batches = state["task_batches"]

    def _stored_tasks(self) -> Tensor:
        assert isinstance(self.memory, SlotMemory)
        return self.memory.column("task")

    def _draw_from(self, chosen: Tensor, n: int, batch: Batch) -> Batch:
        """Return at most `n` of the chosen samples of the memory: (len,) bool."""
        assert isinstance(self.memory, SlotMemory)
        subset = MemorySubset(self.memory, chosen.nonzero().squeeze(1))
        rise = partial(loss_rise, self, batch)
        return retrieve_checked(self.retrieval, subset, n, batch, rise)


def join(first: Batch, second: Batch) -> Batch:
    """Return the samples of both batches with the task of each; either may be empty."""
    if not (len(first) and len(second)):
        return first if len(first) else second
    joined = Batch.concatenate(first, second)
    return Batch(
        joined.x, joined.y, {"task": torch.cat([first.extra["task"], second.extra["task"]])}
    )
