"""CheckpointSchedule: when a run writes a checkpoint, so that little is lost and little is paid."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sterad.errors import SteradError

SHARE = 0.008
"""The part of a run's time that is planned for checkpoints. They stay below a hundredth with it,
although a later one may take longer: the memory has filled, the disk is busy."""
LEAST = 1.0
"""Seconds that are not worth a checkpoint."""


class CheckpointSchedule:
    """Every so many steps and at the end of each task, or else by what all of them have cost."""

    def __init__(self, every: int | None) -> None:
        """Start now; `every` None means by cost."""
        if every is not None and every < 1:
            raise SteradError(
                f"checkpoint_every {every} is below 1: give a number of steps, or leave it out"
            )
        self.every, self.began, self.since = every, time.perf_counter(), time.perf_counter()
        self.cost = self.spent = 0.0
        """Seconds that the last checkpoint took, and all."""

    def due(self, step: int, ends: Collection[int]) -> bool:
        """Return whether a checkpoint is to be written; ends: steps that end a task."""
        if self.every is not None:
            return step % self.every == 0 or step in ends
        now, least = time.perf_counter(), 0.0 if step in ends else LEAST
        # This one has to fit in, and the one at the end of the run.
        after = self.spent + 2 * self.cost
        return now - self.since >= least and (now - self.began) * SHARE >= after

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Time the writing of a checkpoint."""
        began = time.perf_counter()
        yield
        self.since = time.perf_counter()
        self.cost = self.since - began
        self.spent += self.cost
