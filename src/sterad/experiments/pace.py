"""Pace: when a run writes a checkpoint, so that little is lost and little is paid."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sterad.errors import SteradError

SHARE = 0.01
"""The part of a run's time that checkpoints may take."""
LEAST = 1.0
"""Seconds that are not worth a checkpoint."""


class Pace:
    """Every so many steps and at the end of each task, or else by what the last one cost."""

    def __init__(self, every: int | None) -> None:
        """Start now; `every` None means by cost."""
        if every is not None and every < 1:
            raise SteradError(
                f"checkpoint_every {every} is below 1: give a number of steps, or leave it out"
            )
        self.every, self.cost, self.since = every, 0.0, time.perf_counter()

    def due(self, step: int, ends: Collection[int]) -> bool:
        """Return whether a checkpoint is to be written; ends: steps that end a task."""
        if self.every is not None:
            return step % self.every == 0 or step in ends
        least = 0.0 if step in ends else LEAST
        return time.perf_counter() - self.since >= max(least, self.cost / SHARE)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Time the writing of a checkpoint."""
        began = time.perf_counter()
        yield
        self.since = time.perf_counter()
        self.cost = self.since - began
