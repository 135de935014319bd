"""One directory per run: config.json, events.jsonl, checkpoint.pt and, written last, record.json.

A damaged record is reported and left out.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sterad.atomic import remove_leftovers, write_atomically
from sterad.errors import SteradError
from sterad.results.record import METRICS, RunRecord

_REQUIRED_METRICS = ("final_average_accuracy", "anytime_accuracy")


class RunDirectory:
    """The files of one run; the run is complete when `record.json` exists."""

    def __init__(self, out: Path, run_id: str) -> None:
        """Set the paths; no file is created before `locked`."""
        self.path = out / run_id
        self.config = self.path / "config.json"
        self.events = self.path / "events.jsonl"
        self.checkpoint = self.path / "checkpoint.pt"
        self.record = self.path / "record.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory for this process; the system releases the lock even after SIGKILL."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Not thread-local: another thread may release it.
            lock = FileLock(self.path / "lock", thread_local=False, on_acquired=_write_pid)
            lock.acquire(timeout=0)
        except Timeout as error:
            raise SteradError(
                f"the run {str(self.path)!r} is being written by process {self._lock_holder()}: "
                "wait for it to finish, or choose another folder with --out"
            ) from error
        except OSError as error:
            raise self._write_error(error) from error
        try:
            remove_leftovers(self.path)
            yield
        finally:
            lock.release()

    def _lock_holder(self) -> str:
        try:
            return (self.path / "lock").read_text() or "unknown"
        except OSError:  # Windows lets no other process read a locked file
            return "unknown"

    def _write_error(self, error: OSError) -> SteradError:
        return SteradError(
            f"cannot write to {str(self.path)!r}: {error.strerror}. "
            "Free space there, or choose a writable folder with --out"
        )

    def read_record(self) -> RunRecord | None:
        """Return the record, or None if the run is not finished."""
        if not self.record.exists():
            return None
        return read_record(self.record, str(self.record))

    def write_record(self, record: RunRecord) -> None:
        """Write the record, which completes the run."""
        write_atomically(self.record, record.to_json())

    def read_config(self) -> dict[str, Any] | None:
        """Return `config` and `execution` from config.json, or None if there is none."""
        if not self.config.exists():
            return None
        try:
            content: dict[str, Any] = json.loads(self.config.read_text())
            return {"config": content["config"], "execution": content["execution"]}
        except (ValueError, TypeError, KeyError) as error:
            raise SteradError(
                f"{str(self.config)!r} is damaged ({error!r}): delete the directory to start again"
            ) from error

    def write_config(self, config: Mapping[str, Any], execution: Mapping[str, Any]) -> None:
        """Write config.json: the values of the run and how it is executed."""
        text = json.dumps({"config": config, "execution": execution}, indent=1) + "\n"
        write_atomically(self.config, text)

    def trim_events(self, step: int) -> None:
        """Delete events after the step of the checkpoint that the run continues from."""
        if self.events.exists():
            lines = self.events.read_text().splitlines()
            text = "".join(line + "\n" for line in lines if _is_event_until(line, step))
            write_atomically(self.events, text)


def _write_pid(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())


def _is_event_until(line: str, step: int) -> bool:
    try:
        return int(json.loads(line)["step"]) <= step
    except (ValueError, KeyError, TypeError):
        return False  # incomplete after a kill


def read_records(out: Path) -> tuple[list[RunRecord], list[str]]:
    """Return all records ordered by id, and a sentence for each record that is left out.

    `out` contains run directories, or folders of studies with run directories. A run that several
    studies contain counts once.
    """
    if not out.is_dir():
        raise SteradError(
            f"{str(out)!r} is not a folder of runs: `sterad train agd-fd --out {out}` creates one"
        )
    records: dict[str, RunRecord] = {}
    studies: dict[str, Path] = {}
    left_out: list[str] = []
    for path in sorted([*out.glob("*/record.json"), *out.glob("*/*/record.json")]):
        source, study = path.relative_to(out).as_posix(), path.parent.parent
        try:
            record = read_record(path, source)
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


def describe_left_out(records: Sequence[RunRecord], left_out: Sequence[str]) -> list[str]:
    """Return the sentences of `read_records` and one that counts them; empty if there are none."""
    total = len(records) + len(left_out)
    count = f"left out: {len(left_out)} of {total} records; their files are not changed"
    return [*left_out, count] if left_out else []


def read_record(path: Path, source: str) -> RunRecord:
    """Read and check one record; `source` names it in error messages."""
    try:
        record = RunRecord.from_json(path.read_text(encoding="utf-8"), source)
        problem = _find_problem(record)
    except SteradError:
        raise
    except OSError as error:
        raise SteradError(f"{source} cannot be read ({error.strerror}): check the disk") from error
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise SteradError(f"{source} is damaged ({problem}): delete it and run again")
    return record


def _find_problem(record: RunRecord) -> str | None:
    """Return the first inconsistency in a record that would break a table or figure."""
    classes, columns = len(record.stream.class_names), len(record.evaluations)
    labels = {c for task in record.stream.tasks for c in task}
    if record.sphere is not None:
        labels |= {*record.sphere.classes, *(c for f in record.sphere.frames for c in f.labels)}
    rows = [*record.accuracy_matrix, *(moment.cells for moment in record.moments)]
    if not record.moments:
        return "it has no moments"
    if any(len(row) != columns for row in rows):
        return f"a row of accuracies does not have {columns} columns, one per evaluation"
    if any(len(row) != classes for row in record.stream.proportions):
        return f"a row of stream proportions does not have {classes} columns, one per class"
    if not labels <= set(range(classes)) or any(len(m.memory) > classes for m in record.moments):
        return f"it has labels outside its {classes} classes"
    if record.confusion and {len(record.confusion), *map(len, record.confusion)} != {classes}:
        return f"its confusion matrix does not have {classes} rows and columns, one per class"
    return _find_bad_number(record, [cell for row in rows for cell in row])


def _find_bad_number(record: RunRecord, cells: list[float | None]) -> str | None:
    for name in METRICS:
        value = getattr(record, name)
        if not _is_finite_or_none(value) or (value is None and name in _REQUIRED_METRICS):
            return f"{name} is {value!r}"
    required = [record.seconds, record.images_per_second, record.peak_memory_bytes]
    required += [moment.accuracy for moment in record.moments]
    # A sum is finite only if all terms are, and is faster to check than thousands of values.
    required += [sum(map(sum, record.losses)), sum(map(sum, record.confusion))]
    if None in required or not all(map(_is_finite_or_none, (*required, *cells))):
        return "a cost or an accuracy is not a finite number"
    return None


def _is_finite_or_none(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))
