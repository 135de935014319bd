"""One directory per run: config.json, events.jsonl, checkpoints and, written last, record.json.

A damaged record is reported and left out.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sterad.errors import SteradError
from sterad.files import (
    content_hash,
    create_folder,
    parse_json,
    read_regular,
    reading,
    remove_leftovers,
    write_atomically,
)
from sterad.results.record import RunRecord


class RunDirectory:
    """The files of one run; the run is complete when `record.json` exists."""

    def __init__(self, out: Path, run_id: str) -> None:
        """Set the paths; no file is created before `locked`."""
        self.path = out / run_id
        self.config = self.path / "config.json"
        self.events = self.path / "events.jsonl"
        self.checkpoint = self.path / "checkpoint.pt"
        self.previous_checkpoint = self.path / "checkpoint.previous.pt"
        self.record = self.path / "record.json"

    @property
    def newest_checkpoint(self) -> Path | None:
        """The checkpoint that the run continues from if it is not damaged; None without one.

        A kill while a checkpoint is written may leave the previous one alone.
        """
        files = (self.checkpoint, self.previous_checkpoint)
        return next((file for file in files if file.exists()), None)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory for this process; the system releases the lock even after SIGKILL."""
        try:
            create_folder(self.path)
            # Not thread-local: another thread may release it.
            lock = FileLock(self.path / "lock", thread_local=False, on_acquired=_write_pid)
            lock.acquire(timeout=0)
        except Timeout as error:
            raise SteradError(
                f"the run {str(self.path)!r} is being written by process {self._read_pid()}: "
                "wait for it to finish, or choose another folder with --out"
            ) from error
        except OSError as error:
            raise SteradError(
                f"cannot write to {str(self.path)!r}: {error.strerror}. "
                "Free space there, or choose a writable folder with --out"
            ) from error
        try:
            remove_leftovers(self.path)
            yield
        finally:
            lock.release()

    def find_writer(self) -> str | None:
        """Return the id of the process that holds the lock, or None; no file is created."""
        if not (self.path / "lock").is_file():
            return None
        lock = FileLock(self.path / "lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return self._read_pid()
        except OSError:  # a folder that this process cannot write to
            return None
        lock.release()
        return None

    def _read_pid(self) -> str:
        try:
            return (self.path / "lock").read_text() or "unknown"
        except OSError:  # Windows lets no other process read a locked file
            return "unknown"

    def read_record(self) -> RunRecord | None:
        """Return the record, or None if the run is not finished."""
        return read_record_file(self.record) if self.record.exists() else None

    def write_record(self, record: RunRecord) -> None:
        """Write the record, which completes the run; one checkpoint is enough then."""
        write_atomically(self.record, record.to_json())
        self.previous_checkpoint.unlink(missing_ok=True)

    def read_config(self) -> dict[str, Any] | None:
        """Return what `write_config` wrote, or None if there is no config.json."""
        if not self.config.exists():
            return None
        with reading(self.config, f"undo its change, or delete {str(self.path)!r} to start again"):
            content = parse_json(read_regular(self.config))
            if content.pop("sha256") != content_hash(content):
                raise ValueError("its content does not match its SHA-256")
            found = {name: content[name] for name in ("config", "execution")}
            if not all(isinstance(values, dict) for values in found.values()):
                raise ValueError("config and execution must be objects with names and values")
            if "input_shape" in content:
                found["input_shape"] = _checked_shape(content["input_shape"])
            return found

    def write_config(
        self,
        config: Mapping[str, Any],
        execution: Mapping[str, Any],
        input_shape: tuple[int, ...] | None = None,
    ) -> None:
        """Write config.json: the values of the run and how it is executed.

        input_shape: of a run on a feed, which may have no batch left when the run continues.
        """
        content: dict[str, Any] = {"config": config, "execution": execution}
        if input_shape is not None:
            content["input_shape"] = list(input_shape)
        text = json.dumps(content | {"sha256": content_hash(content)}, indent=1) + "\n"
        write_atomically(self.config, text)

    def trim_events(self, step: int) -> None:
        """Delete events after the checkpoint at `step` that the run continues from; 0: all."""
        if not self.events.exists():
            return
        with reading(self.events, "delete it to continue the run without earlier events"):
            lines = read_regular(self.events).splitlines()
        found = [(event, line) for line in lines if (event := parse_event(line))]
        kinds = [(event.get("event"), event["step"]) for event, _ in found]
        if ("checkpoint", step) in kinds:
            found = found[: len(kinds) - kinds[::-1].index(("checkpoint", step))]
        # After a power cut the event of the checkpoint may be missing.
        kept = [
            line + b"\n"
            for event, line in found
            if event["step"] <= step and event.get("event") != "end"
        ]
        write_atomically(self.events, b"".join(kept) if step else b"")


def _write_pid(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())


def _checked_shape(sizes: Any) -> tuple[int, ...]:
    """Return the shape of inputs that config.json contains."""
    is_list = isinstance(sizes, list) and len(sizes) in (1, 3)
    if not (is_list and all(type(size) is int and size > 0 for size in sizes)):
        raise ValueError("input_shape must be one or three positive integers")
    return tuple(sizes)


def parse_event(line: bytes) -> dict[str, Any] | None:
    """Return the event in a line of events.jsonl; None for one that is incomplete or damaged."""
    try:
        event = parse_json(line.decode())
    except (ValueError, RecursionError):  # also numbers that are not finite: a run writes none
        return None
    is_event = isinstance(event, dict) and type(event.get("step")) is int
    return event if is_event and isinstance(event.get("event", ""), str) else None


def read_records(out: Path) -> tuple[list[RunRecord], list[str]]:
    """Return all records ordered by id, and a sentence for each record that is left out.

    `out` contains run directories, or folders of studies with run directories. A run that several
    studies contain counts once.
    """
    check_folder(out)
    records: dict[str, RunRecord] = {}
    studies: dict[str, Path] = {}
    left_out: list[str] = []
    for path in sorted([*out.glob("*/record.json"), *out.glob("*/*/record.json")]):
        source, study = path.relative_to(out).as_posix(), path.parent.parent
        try:
            record = read_record_file(path, source)
        except SteradError as error:
            left_out.append(str(error))
            continue
        if studies.setdefault(record.id, study) != study:
            continue
        if record.id in records:
            left_out.append(f"{source} repeats the run {record.id}: delete one of the two")
        else:
            records[record.id] = record
    return sorted(records.values(), key=lambda record: record.id), left_out


def check_folder(out: Path) -> None:
    """Raise unless `out` is a folder."""
    if not out.is_dir():
        raise SteradError(
            f"{str(out)!r} is not a folder of runs: `sterad train agd-fd --out {out}` creates one"
        )


def describe_left_out(records: Sequence[RunRecord], left_out: Sequence[str]) -> list[str]:
    """Return the sentences of `read_records` and one that counts them; empty if there are none."""
    total = len(records) + len(left_out)
    count = f"left out: {len(left_out)} of {total} records; their files are not changed"
    return [*left_out, count] if left_out else []


def read_record_file(path: Path, source: str | None = None) -> RunRecord:
    """Read and check a record; `source` names it in error messages (default: its path)."""
    source = str(path) if source is None else source
    try:
        content = read_regular(path)
    except OSError as error:
        raise SteradError(f"{source} cannot be read ({error.strerror}): check the disk") from error
    return RunRecord.from_json(content, source)
