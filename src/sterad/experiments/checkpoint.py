"""Checkpoints: plain dictionaries, written by rename and never unpickled; and when to write one."""

import pickle
import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from sterad.atomic import write_atomically
from sterad.errors import SteradError

FORMAT = "sterad checkpoint"
SCHEMA = 1
PLANNED_TIME_FRACTION = 0.008
"""Fraction of a run's time planned for checkpoints. It keeps them below 1 %, although later ones
may take longer because the memory is full or the disk is busy."""
MIN_INTERVAL_S = 1.0
"""Minimum seconds between two checkpoints within a task."""


def save_checkpoint(path: Path, owner: str, state: dict[str, Any]) -> None:
    """Write the state of `owner`, such as a run's id, completely or not at all."""
    content = {"format": FORMAT, "schema": SCHEMA, "owner": owner, "state": state}
    write_atomically(path, lambda file: torch.save(content, file))


def load_checkpoint(path: Path, owner: str, remedy: str | None = None) -> dict[str, Any]:
    """Read the state of `owner`; refuse a file that would run code or belongs to another owner.

    remedy: what the user can do then (default: delete the run's checkpoint).
    """
    remedy = remedy or f"delete {str(path)!r} to start from the beginning"
    try:
        with warnings.catch_warnings():
            # torch warns about the protocol of foreign pickles, which are refused anyway.
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise SteradError(
            f"{str(path)!r} holds more than plain tensors and values, and reading it could run "
            f"code, so it is refused: {remedy}"
        ) from error
    except Exception as error:  # torch documents no error type for foreign bytes
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SteradError(
            f"{str(path)!r} is damaged, truncated or not a file of sterad ({reason}): {remedy}"
        ) from error
    keys = {"format", "schema", "owner", "state"}
    if not isinstance(content, dict) or content.get("format") != FORMAT or keys - set(content):
        raise SteradError(f"{str(path)!r} is not a checkpoint of sterad: {remedy}")
    if content["schema"] != SCHEMA:
        raise SteradError(
            f"{str(path)!r} has schema {content['schema']} and this sterad reads {SCHEMA}: "
            f"use the sterad that wrote it, or {remedy}"
        )
    if content["owner"] != owner:
        raise SteradError(
            f"{str(path)!r} belongs to {content['owner']!r} and not to {owner!r}: {remedy}"
        )
    state: dict[str, Any] = content["state"]
    return state


class CheckpointSchedule:
    """Decides when a run writes a checkpoint: at fixed intervals, or by what they have cost."""

    def __init__(self, every: int | None) -> None:
        """Start the clock; `every` is a number of steps, or None to decide by cost."""
        if every is not None and every < 1:
            raise SteradError(
                f"checkpoint_every {every} is below 1: give a number of steps, or leave it out"
            )
        self.every = every
        self.started = self.last_written = time.perf_counter()
        self.last_cost = self.total_cost = 0.0
        """Seconds spent on the last checkpoint, and on all."""

    def is_due(self, step: int, task_ends: Collection[int]) -> bool:
        """Return whether to write a checkpoint after `step`; `task_ends` are steps."""
        if self.every is not None:
            return step % self.every == 0 or step in task_ends
        now, interval = time.perf_counter(), 0.0 if step in task_ends else MIN_INTERVAL_S
        # Leave time for this checkpoint and for the one at the end of the run.
        cost = self.total_cost + 2 * self.last_cost
        is_affordable = (now - self.started) * PLANNED_TIME_FRACTION >= cost
        return now - self.last_written >= interval and is_affordable

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Measure the time to write a checkpoint."""
        started = time.perf_counter()
        yield
        self.last_written = time.perf_counter()
        self.last_cost = self.last_written - started
        self.total_cost += self.last_cost
