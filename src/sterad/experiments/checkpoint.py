"""Checkpoints: plain dictionaries with a hash, never unpickled; and when to write one."""

import hashlib
import os
import pickle
import time
import warnings
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import torch

from sterad.errors import SteradError
from sterad.files import check_regular, reading, write_atomically
from sterad.saved_state import tensors_of

FORMAT = "sterad checkpoint"
SCHEMA = 3
HASH_LINE_SIZE = len("\nsha256 \n") + 64
PLANNED_TIME_FRACTION = 0.008
"""Fraction of a run's time planned for checkpoints. It keeps them below 1 %, although later ones
may take longer because the memory is full or the disk is busy."""
MIN_INTERVAL_S = 1.0
"""Minimum seconds between two checkpoints within a task."""


class _HashingWriter:
    """Writes to a file and hashes what is written."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.sha256 = file, hashlib.sha256()

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def save_checkpoint(
    path: Path, owner: str, state: dict[str, Any], previous: Path | None = None
) -> None:
    """Write the state of `owner`, such as a run's id, completely or not at all.

    previous: name under which the file that was at `path` is kept.
    """
    content = {"format": FORMAT, "schema": SCHEMA, "owner": owner, "state": state}
    save_hashed(path, content, previous)


def save_hashed(path: Path, content: Any, previous: Path | None = None) -> None:
    """Write a file of torch.save, followed by a line with the SHA-256 of everything before it."""

    def write(file: BinaryIO) -> None:
        writer = _HashingWriter(file)
        torch.save(content, cast(IO[bytes], writer))  # write and flush are enough
        file.write(b"\nsha256 " + writer.sha256.hexdigest().encode() + b"\n")

    write_atomically(path, write, previous)


def load_checkpoint(path: Path, owner: str, remedy: str | None = None) -> dict[str, Any]:
    """Read the state of `owner`; refuse a damaged file, one of another owner, and one with code.

    remedy: what the user can do then (default: delete the run's checkpoint).
    """
    remedy = remedy or f"delete {str(path)!r} to start from the beginning"
    with reading(path, remedy):
        check_regular(path)
        _check_hash(path)
        _check_sizes(path)
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
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("it is not a checkpoint of sterad")
        for tensor in tensors_of(content):  # before values are compared, which could be tensors
            if tensor.untyped_storage().nbytes() < tensor.numel() * tensor.element_size():
                raise ValueError("a tensor claims more elements than the file holds")
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


def _check_hash(path: Path) -> None:
    """Raise ValueError unless the last line is the SHA-256 of everything before it."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END) - HASH_LINE_SIZE
        file.seek(max(size, 0))
        line = file.read()
        file.seek(0)
        digest = hashlib.sha256()
        while size > 0 and (chunk := file.read(min(size, 1 << 20))):
            digest.update(chunk)
            size -= len(chunk)
    if line != b"\nsha256 " + digest.hexdigest().encode() + b"\n":
        raise ValueError("its content does not match its SHA-256")


def _check_sizes(path: Path) -> None:
    """Raise ValueError if reading the archive would take more memory than its size on disk."""
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError("it is compressed, which torch.save never does")
        if sum(member.file_size for member in archive.infolist()) > path.stat().st_size:
            raise ValueError("its members claim more bytes than the file has")


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
