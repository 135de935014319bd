"""Parcel: a job with all that it needs on a machine that shares nothing with this one."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from sterad.atomic import write_atomically
from sterad.errors import SteradError
from sterad.experiments.launchers.job import Job, Outcome, attempted
from sterad.extras import require_extra

PATIENCE = 8.0
"""Seconds in which a cluster answers."""
BEGUN = ("config.json", "events.jsonl", "checkpoint.pt")
"""What a run needs to continue."""
BROUGHT = ("traceback.txt", "config.json", "events.jsonl", "record.json")
"""What comes back; the record last, because its presence is completion."""


@dataclass(frozen=True)
class Parcel:
    """Plain values and the contents of files."""

    id: str
    job: str
    shared: bool
    """Whether the run's directory is seen there under the same path."""
    token: str
    """The same for each try of a run: one on the same machine finds what the last one left."""
    working: str
    """Working folder here; relative paths are meant from it, where it exists there."""
    plugins: tuple[tuple[str, bytes], ...]
    begun: Mapping[str, bytes]

    @classmethod
    def of(cls, job: Job, shared: bool, token: str) -> Self:
        """Read what must go along."""
        away = replace(job, out=job.out.resolve(), loggers=job.loggers if shared else ())
        begun = {} if shared or not job.place.checkpoint.exists() else _read(job.place.path, BEGUN)
        plugins = tuple((file.name, file.read_bytes()) for file in job.plugins)
        return cls(job.id, away.to_json(), shared, token, str(Path.cwd()), plugins, begun)


class _Telling:
    """A logger that tells an ear far away."""

    def __init__(self, run: str, ear: Any) -> None:
        self.run, self.ear = run, ear
        self.last: Any = None

    def __enter__(self) -> Self:
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        self.last = self.ear.tell.remote(self.run, event)

    def __exit__(self, *_: object) -> None:
        # The process ends with its run and would take along what is still on its way.
        if self.last is not None:
            require_extra("ray", "ray").wait([self.last], timeout=PATIENCE)


def open_and_run(parcel: Parcel, ear: Any) -> tuple[str | None, dict[str, bytes]]:
    """Run what is in a parcel; return what went wrong, if anything, and the files to bring back."""
    scratch = Path(tempfile.gettempdir()) / f"sterad-{parcel.token}-{parcel.id}"
    scratch.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(OSError):
        os.chdir(parcel.working)
    plain = json.loads(parcel.job)
    home = Path(plain["out"]) / parcel.id
    if not parcel.shared:
        plain["out"] = str(scratch)
    place = Path(plain["out"]) / parcel.id
    if parcel.begun and not place.exists():  # a try before this one may have left more
        _write(place, parcel.begun)
    for at, (name, content) in enumerate(parcel.plugins):
        _write(scratch / str(at), {name: content})
        plain["plugins"][at] = str(scratch / str(at) / name)
    error = attempted(json.dumps(plain), [_Telling(parcel.id, ear)])
    files = {} if parcel.shared else _read(place, BROUGHT)
    shutil.rmtree(scratch, ignore_errors=True)
    return error and error.replace(str(place), str(home)), files


def delivered(job: Job, error: str | None, files: Mapping[str, bytes], shared: bool) -> Outcome:
    """Write what came back under the lock that the caller holds, and say what came of the job."""
    try:
        if not shared:
            # Without a record only the traceback is news: a run begun here stays as it is.
            for name in BROUGHT if "record.json" in files else BROUGHT[:1]:
                if name in files:
                    write_atomically(job.place.path / name, files[name])
        record = job.place.read_record() if error is None else None
        if record is not None and not shared:
            _replay(job, files["events.jsonl"])
    except SteradError as refused:
        return Outcome(job, error=str(refused))
    return Outcome(job, record, error)


def _replay(job: Job, events: bytes) -> None:
    for logger in job.own_loggers():
        with logger:
            for line in events.splitlines():
                logger.emit(json.loads(line))


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _read(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
