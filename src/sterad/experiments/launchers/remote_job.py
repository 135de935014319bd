"""RemoteJob: a job with all files that it needs on a machine that shares no disk with this one."""

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from sterad.errors import SteradError
from sterad.experiments.launchers.job import Job, Outcome, read_outcome, run_job
from sterad.files import write_atomically
from sterad.optional_imports import require_extra
from sterad.results.run_directory import parse_event

RAY_TIMEOUT_S = 8.0
"""Seconds to wait for a reply of the cluster."""
RESUME_FILES = ("config.json", "events.jsonl", "checkpoint.pt")
"""Files that a run needs to resume."""
RESULT_FILES = ("traceback.txt", "config.json", "events.jsonl", "record.json")
"""Files that are sent back; the record is last, because its presence means completion."""


@dataclass(frozen=True)
class RemoteJob:
    """A job as text, with the contents of its files."""

    id: str
    job: str
    """The text of `Job.to_json`."""
    shared: bool
    """Whether the remote machine has the run's directory under the same path."""
    working_directory: str
    """Relative paths refer to this folder, if the remote machine has it."""
    plugins: tuple[tuple[str, bytes], ...]
    """Name and content of each plugin."""
    resume_files: Mapping[str, bytes]
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Equal for all attempts of a run, so that a retry on the same machine finds its files."""

    @classmethod
    def create(cls, job: Job, shared: bool) -> Self:
        """Read the files of a job."""
        # Without a shared disk, loggers run here, on the events that are sent back.
        remote = replace(job, out=job.out.resolve(), loggers=job.loggers if shared else ())
        resume_files = {}
        if not shared and job.directory.checkpoint.exists():
            resume_files = _read_files(job.directory.path, RESUME_FILES)
        plugins = tuple((file.name, file.read_bytes()) for file in job.plugins)
        return cls(job.id, remote.to_json(), shared, str(Path.cwd()), plugins, resume_files)


def run_remote_job(remote: RemoteJob, actor: Any) -> tuple[str | None, dict[str, bytes]]:
    """Run a job on the remote machine, and send its events to an `EventActor`.

    Return its error, or None, and the files to send back.
    """
    scratch = Path(tempfile.gettempdir()) / f"sterad-{remote.token}-{remote.id}"
    scratch.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(OSError):
        os.chdir(remote.working_directory)
    values = json.loads(remote.job)
    original = Path(values["out"]) / remote.id
    if not remote.shared:
        values["out"] = str(scratch)
    directory = Path(values["out"]) / remote.id
    if remote.resume_files and not directory.exists():  # an earlier attempt may have got further
        _write_files(directory, remote.resume_files)
    for number, (name, content) in enumerate(remote.plugins):
        folder = scratch / str(number)  # two plugins may have the same name
        _write_files(folder, {name: content})
        values["plugins"][number] = str(folder / name)
    sent: list[Any] = []
    error = run_job(
        json.dumps(values), lambda event: sent.append(actor.add.remote(remote.id, event))
    )
    if sent:  # events that have not arrived when the process ends are lost
        require_extra("ray", "ray").wait(sent[-1:], timeout=RAY_TIMEOUT_S)
    files = {} if remote.shared else _read_files(directory, RESULT_FILES)
    shutil.rmtree(scratch, ignore_errors=True)
    return error and error.replace(str(directory), str(original)), files


def store_result(job: Job, error: str | None, files: Mapping[str, bytes]) -> Outcome:
    """Write the files that were sent back, and return the outcome.

    The caller holds the lock of the run's directory, unless it is on a shared disk.
    """
    try:
        # Without a record only the traceback is written: the run keeps its state here.
        for name in RESULT_FILES if "record.json" in files else ("traceback.txt",):
            if name in files:
                write_atomically(job.directory.path / name, files[name])
        if error is None and files:
            for logger in job.create_loggers():
                with logger:
                    for event in map(parse_event, files["events.jsonl"].splitlines()):
                        if event is not None:
                            logger.emit(event)
    except SteradError as failure:
        return Outcome(job, error=str(failure))
    return read_outcome(job, error)


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _read_files(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}
