"""Runs on disk in any state: finished, running, unfinished or damaged."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from sterad.errors import SteradError, suggest_name
from sterad.files import read_regular, reading
from sterad.results.grouping import Settings, flatten, format_value
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory, check_folder, parse_event, read_record_file

State = Literal["finished", "running", "unfinished", "damaged"]
Curve = tuple[tuple[int, float], ...]
"""Stream images learned and accuracy on all seen classes, at each evaluation."""
MAX_NAMED = 4
"""Names in an error message."""


@dataclass(frozen=True)
class StoredRun:
    """A run on disk."""

    path: Path
    """The run directory, or a record file on its own."""
    state: State
    config: Mapping[str, Any]
    """The values of the run; empty if they cannot be read."""
    record: RunRecord | None = None
    problem: str = ""
    """What is wrong with a damaged run."""
    curve: Curve = ()
    samples: int = 0
    """Images of the whole stream; 0 if it is not known."""
    step: int = 0
    steps: int | None = None
    """Steps of the whole stream; None if it has no known end."""
    seconds: float = 0.0
    changed: float = 0.0
    """Time of the last change in seconds since the epoch."""

    @property
    def id(self) -> str:
        """The id of the run; the name of its directory if it has no record."""
        return self.path.name if self.record is None else self.record.id

    @property
    def accuracy(self) -> float | None:
        """The final average accuracy; of an unfinished run, the last accuracy on seen classes."""
        if self.record is not None:
            return self.record.final_average_accuracy
        return self.curve[-1][1] if self.curve else None

    @cached_property
    def settings(self) -> Settings:
        """The config as dotted paths."""
        return flatten(self.config)

    def value(self, path: str) -> str:
        """Return a setting as text, empty if the run does not have it."""
        return format_value(self.settings[path]) if path in self.settings else ""


def read_run(path: Path) -> StoredRun:
    """Read a run directory or a record file; damage is part of the result, not an error."""
    if path.is_file():
        return _finished(path, read_record_file(path), path)
    folder = RunDirectory(path.parent, path.name)
    try:
        record = folder.read_record()
        if record is not None:
            return _finished(path, record, folder.record)
        started = folder.read_config()
    except SteradError as error:
        return StoredRun(path, "damaged", {}, problem=str(error), changed=_changed(folder))
    if started is None:
        problem = f"{str(path)!r} has neither a record.json nor a config.json"
        return StoredRun(path, "damaged", {}, problem=problem, changed=_changed(folder))
    return _unfinished(folder, started["config"])


def _finished(path: Path, record: RunRecord, file: Path) -> StoredRun:
    return StoredRun(
        path,
        "finished",
        record.config,
        record,
        curve=tuple((moment.samples, moment.accuracy) for moment in record.moments),
        samples=record.stream.samples,
        step=record.stream.steps,
        steps=record.stream.steps,
        seconds=record.seconds,
        changed=file.stat().st_mtime,
    )


def _unfinished(folder: RunDirectory, config: Mapping[str, Any]) -> StoredRun:
    """Return a run without a record, with the progress of its events."""
    events: list[dict[str, Any]] = []
    if folder.events.is_file():
        with reading(folder.events, "check the disk"):
            lines = read_regular(folder.events).splitlines()
        events = [event for line in lines if (event := parse_event(line))]
    last = events[-1] if events else {}
    totals = [event.get("total_samples") for event in events]
    steps, seconds = last.get("steps"), last.get("seconds", 0.0)
    return StoredRun(
        folder.path,
        "unfinished" if folder.find_writer() is None else "running",
        config,
        curve=tuple(
            (event["samples"], float(event["accuracy"]))
            for event in events
            if type(event.get("samples")) is int and type(event.get("accuracy")) in (int, float)
        ),
        samples=next((total for total in reversed(totals) if type(total) is int), 0),
        step=last.get("step", 0),
        steps=steps if type(steps) is int else None,
        seconds=float(seconds) if type(seconds) in (int, float) else 0.0,
        changed=_changed(folder),
    )


def _changed(folder: RunDirectory) -> float:
    """Return the time of the last change of a file of the run; 0 without files."""
    files = (folder.record, folder.events, folder.checkpoint, folder.config)
    return max((file.stat().st_mtime for file in files if file.is_file()), default=0.0)


def find_run_folders(out: Path) -> list[Path]:
    """Return the run directories under `out`, also those in folders of studies; no symbolic links.

    A directory is that of a run if it has a record.json or a config.json.
    """
    check_folder(out)
    found = {
        file.parent
        for name in ("record.json", "config.json")
        for pattern in (f"*/{name}", f"*/*/{name}")
        for file in out.glob(pattern)
    }
    return sorted(path for path in found if not _has_link(path, out))


def _has_link(path: Path, out: Path) -> bool:
    """Return whether `path` or a folder between it and `out` is a symbolic link."""
    inside = [path, *path.parents]
    return any(folder.is_symlink() for folder in inside[: inside.index(out)])


def read_runs(out: Path) -> list[StoredRun]:
    """Return all runs under `out`, ordered by id."""
    return sorted(map(read_run, find_run_folders(out)), key=lambda run: (run.id, run.path))


def resolve_run(name: str, out: Path) -> StoredRun:
    """Return the run of a directory, a record file, an id, or a unique beginning of one.

    The beginning may also be that of the hash at the end of the id.
    """
    path = Path(name)
    if path.is_file():
        if path.suffix != ".json":
            raise SteradError(
                f"{name!r} is not the record of a run: give a record.json, the directory of a "
                "run, or its id"
            )
        return read_run(path)
    if (path / "record.json").is_file() or (path / "config.json").is_file():
        return read_run(path)
    if path.is_dir():
        raise SteradError(
            f"{name!r} is a folder, not a run: it has no config.json and no record.json; "
            f"`sterad runs {name}` lists the runs in it"
        )
    return read_run(_match(name, find_run_folders(out), out))


def _begins(run_id: str, name: str) -> bool:
    return bool(name) and (run_id.startswith(name) or run_id.rpartition("-")[2].startswith(name))


def _match(name: str, folders: Sequence[Path], out: Path) -> Path:
    exact = [folder for folder in folders if folder.name == name]
    found = exact or [folder for folder in folders if _begins(folder.name, name)]
    if len(found) == 1:
        return found[0]
    if not folders:
        raise SteradError(
            f"there is no run {name!r}: {str(out)!r} has no runs; --out names another folder"
        )
    if not found:
        near = suggest_name(name, [folder.name for folder in folders])
        raise SteradError(
            f"there is no run {name!r} in {str(out)!r}: {near}`sterad runs {out}` lists the "
            "runs there"
        )
    # Equal names are in several studies.
    names = [str(folder if exact else folder.name) for folder in found[:MAX_NAMED]]
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    raise SteradError(
        f"{name!r} is the beginning of {len(found)} runs: give more of {', '.join(names)}{more}"
        if not exact
        else f"{name!r} is in {len(found)} folders: give the path {' or '.join(names)}"
    )


def matches(run: StoredRun, field: str, value: str) -> bool:
    """Return whether a setting of the run has a value; `field` may be the end of its path.

    >>> run = StoredRun(Path("a"), "unfinished", {"method": {"name": "er", "lr": 0.5}})
    >>> matches(run, "lr", "0.50"), matches(run, "method.name", "er"), matches(run, "lr", "1")
    (True, True, False)
    """
    return any(
        format_value(found) == value or _is_equal_number(found, value)
        for path, found in run.settings.items()
        if path == field or path.endswith(f".{field}")
    )


def _is_equal_number(found: Any, value: str) -> bool:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    with suppress(ValueError):
        return float(value) == found
    return False


def check_field(field: str, runs: Iterable[StoredRun]) -> None:
    """Raise if no run has a setting of this name."""
    known = {path for run in runs for path in run.settings}
    names = known | {path.rpartition(".")[2] for path in known}
    if names and field not in names:
        near = suggest_name(field, sorted(names))
        raise SteradError(f"no run has a field {field!r}: {near}`sterad show RUN` prints them")


def age_of(run: StoredRun, now: float | None = None) -> float:
    """Return the seconds since the last change of a run."""
    return max(0.0, (time.time() if now is None else now) - run.changed)
