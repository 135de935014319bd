"""ChangeDetector: guesses where tasks change on a stream that does not say so."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sterad.errors import SteradError


class ChangeDetector:
    """A new class means a new task, unless the last change lies fewer than `lag` batches back.

    Classes that appear within the lag are absorbed: the next change needs yet another new class.

    >>> detector = ChangeDetector(lag=2)
    >>> [detector.observe(torch.tensor([label])) for label in (0, 1, 1, 2)]
    [True, False, False, True]
    >>> detector.task, sorted(detector.old)
    (1, [0, 1])
    """

    def __init__(self, lag: int = 100) -> None:
        """Wait `lag` batches after a change; the first batch always is one."""
        if lag < 0:
            raise SteradError(f"the lag of a change detector is {lag}: give 0 or more batches")
        self.lag = lag
        self.task = -1
        """The current task, counted from 0; -1 before the first batch."""
        self.seen: frozenset[int] = frozenset()
        """All classes so far."""
        self.old: frozenset[int] = frozenset()
        """The classes that were known before the last new one came."""
        self._since = lag

    def observe(self, labels: Tensor) -> bool:
        """Take in the labels of a batch and return whether a task begins with it."""
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
        """Return everything, as integers and tensors."""
        return {
            "lag": self.lag,
            "task": self.task,
            "since": self._since,
            "seen": torch.tensor(sorted(self.seen), dtype=torch.int64),
            "old": torch.tensor(sorted(self.old), dtype=torch.int64),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        self.lag, self.task, self._since = state["lag"], state["task"], state["since"]
        self.seen = frozenset(state["seen"].tolist())
        self.old = frozenset(state["old"].tolist())
