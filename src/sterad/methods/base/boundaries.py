"""Task boundaries, for methods that use them: announced, or detected by new classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.saved_state import check_count, check_labels, check_like
from sterad.validation import Range


@dataclass(frozen=True)
class BoundaryConfig:
    """Source of task boundaries."""

    boundaries: Literal["auto", "announced", "detected"] = "auto"
    """announced by the stream, detected by new classes, or auto: announced if the stream does."""
    detection_lag: Annotated[int, Range(0, 1_000_000)] = 100
    """Minimum number of batches between two detected boundaries."""


class TaskCounter:
    """Counts finished tasks, from announcements or from a detector, never from both."""

    def __init__(self, config: BoundaryConfig, announced: bool) -> None:
        """Choose the source; `announced`: whether the stream announces the ends of tasks."""
        if config.boundaries == "announced" and not announced:
            raise SteradError(
                "boundaries=announced on a stream that announces none: use detected or auto"
            )
        uses_announcements = announced and config.boundaries != "detected"
        self.detector = None if uses_announcements else ChangeDetector(config.detection_lag)
        self.finished = 0
        """Number of finished tasks."""

    def announce(self) -> bool:
        """Handle the announced end of a task; return whether it counts."""
        counts = self.detector is None
        self.finished += counts
        return counts

    def detect(self, labels: Tensor) -> bool:
        """Update with the labels of a batch before it is learned; return whether a task ended."""
        if self.detector is None or not self.detector.observe(labels) or self.detector.task < 1:
            return False
        self.finished += 1
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the count and the detector's state."""
        detector = None if self.detector is None else self.detector.state_dict()
        return {"finished": self.finished, "detector": detector}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        check_count(state["finished"], "finished tasks")
        self.finished = state["finished"]
        if self.detector is not None:
            self.detector.load_state_dict(state["detector"])


class ChangeDetector:
    """Starts a new task at a new class if the last change is at least `lag` batches back.

    Classes that appear within the lag belong to the current task: the next change needs another
    new class.

    >>> detector = ChangeDetector(lag=2)
    >>> [detector.observe(torch.tensor([label])) for label in (0, 1, 1, 2)]
    [True, False, False, True]
    >>> detector.task, sorted(detector.old)
    (1, [0, 1])
    """

    def __init__(self, lag: int = 100) -> None:
        """Require `lag` batches between changes; the first batch always is a change."""
        if lag < 0:
            raise SteradError(f"the lag of a change detector is {lag}: give 0 or more batches")
        self.lag = lag
        self.task = -1
        """Index of the current task, from 0; -1 before the first batch."""
        self.seen: frozenset[int] = frozenset()
        """All classes so far."""
        self.old: frozenset[int] = frozenset()
        """The classes seen before the last batch with a new class."""
        self._since = lag

    def observe(self, labels: Tensor) -> bool:
        """Update with the labels of a batch and return whether a task starts with it."""
        self._since += 1
        new = set(labels.tolist()) - self.seen
        if not new:
            return False
        self.old, self.seen = self.seen, self.seen | new
        if self._since < self.lag:
            return False
        self.task += 1
        self._since = 0
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as integers and tensors."""
        return {
            "lag": self.lag,
            "task": self.task,
            "since": self._since,
            "seen": torch.tensor(sorted(self.seen), dtype=torch.int64),
            "old": torch.tensor(sorted(self.old), dtype=torch.int64),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        for name in ("lag", "task", "since"):
            check_like(state[name], 0, name)
        for name in ("seen", "old"):
            check_labels(state[name], name)
        self.lag, self.task, self._since = state["lag"], state["task"], state["since"]
        self.seen = frozenset(state["seen"].tolist())
        self.old = frozenset(state["old"].tolist())
