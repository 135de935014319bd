"""Job: a run that can be sent to another process or machine; Launcher: what executes jobs."""

import contextlib
import dataclasses
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.run import run
from sterad.loggers import LOGGERS, Logger
from sterad.plugins import load_plugin
from sterad.registry import Registry
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.validation import build

EventCallback = Callable[[str, Mapping[str, Any]], bool | None]
"""Called with the id of a run and one of its events; if it returns True, the run should be stopped.

A launcher that cannot stop a single run may ignore this.
"""
MAX_ERROR_LENGTH = 300
"""Characters of an unexpected error that are shown."""


@dataclass(frozen=True)
class Job:
    """A run, the folder that its directory is in, and how it is executed."""

    config: RunConfig
    out: Path
    execution: Execution
    checkpoint_every: int | None = None
    plugins: tuple[Path, ...] = ()
    loggers: tuple[str, ...] = ()
    """Names of additional loggers that receive the events."""
    accept_changes: bool = False
    """Whether an interrupted run continues although something that it depends on changed."""

    @property
    def id(self) -> str:
        """Return the id of the run."""
        return self.config.id

    @property
    def directory(self) -> RunDirectory:
        """Return the directory of the run."""
        return RunDirectory(self.out, self.id)

    def to_json(self) -> str:
        """Return a line of text for `from_json`, on any machine that has the same files."""
        config, execution = self.config.to_dict(with_paths=True), dataclasses.asdict(self.execution)
        values = vars(self) | {"config": config, "execution": execution}
        return json.dumps(values, default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Load the plugins, then return the job."""
        values = json.loads(text)
        plugins = tuple(Path(file) for file in values["plugins"])
        for file in plugins:
            load_plugin(file)
        return cls(
            RunConfig.from_dict(values["config"]),
            Path(values["out"]),
            build(Execution, values["execution"]),
            values["checkpoint_every"],
            plugins,
            tuple(values["loggers"]),
            values["accept_changes"],
        )

    def create_loggers(self) -> list[Logger]:
        """Return the additional loggers; they are not opened yet."""
        folder, config = self.directory.path, self.config.to_dict()
        return [LOGGERS[name](self.id, folder, config) for name in self.loggers]

    def run(self, loggers: Sequence[Logger] = ()) -> RunRecord:
        """Start or resume the run, or read its record if it is finished."""
        loggers = [*self.create_loggers(), *loggers]
        return run(
            self.config,
            self.out,
            self.execution,
            self.checkpoint_every,
            loggers,
            accept_changes=self.accept_changes,
        )

    def with_resources(self, cpus: float, gpus: float) -> Self:
        """Return the job for a worker that has `cpus` and `gpus` reserved for it."""
        threads = self.execution.threads or max(1, int(cpus))
        device = "cuda" if gpus else "cpu"
        execution = dataclasses.replace(self.execution, threads=threads, device=device)
        return dataclasses.replace(self, execution=execution)


@dataclass(frozen=True)
class Outcome:
    """The result of a job: a record, or an error message."""

    job: Job
    record: RunRecord | None = None
    error: str | None = None


class Launcher(Protocol):
    """Executes jobs; finished runs are not repeated, interrupted ones are resumed."""

    def launch(self, jobs: Sequence[Job], on_event: EventCallback) -> Iterator[Outcome]:
        """Yield the outcome of each job as it ends; a failed job does not stop the others."""


LAUNCHERS: Registry[type[Launcher]] = Registry("launcher", "sterad.launchers")


def check_data(jobs: Sequence[Job]) -> None:
    """Raise an error before the first run starts if data are missing on this machine."""
    for dataset in dict.fromkeys(job.config.dataset.fields for job in jobs):
        if hasattr(dataset, "require_files"):
            dataset.require_files()


@dataclass(frozen=True)
class CallbackLogger:
    """A logger that passes each event to a function."""

    emit: Callable[[Mapping[str, Any]], None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def run_job(
    text: str, on_event: Callable[[Mapping[str, Any]], None] = lambda event: None
) -> str | None:
    """Run the job of `Job.to_json` and pass on its events; return an error message, or None.

    An unexpected exception also leaves a traceback in the directory of the run.
    """
    directory = None
    try:
        job = Job.from_json(text)
        directory = job.directory
        job.run([CallbackLogger(on_event)])
    except SteradError as error:
        return str(error)
    except Exception as error:
        message = f"{type(error).__name__}: {shorten_error(error)}"
        if directory is None:
            return message
        file = directory.path / "traceback.txt"
        with contextlib.suppress(OSError):  # a full disk may be the error that is reported
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(traceback.format_exc())
        return f"{message}; see {str(file)!r}"
    return None


def shorten_error(error: Exception) -> str:
    """Return the message of an exception as one line of limited length."""
    return " ".join(str(error).split())[:MAX_ERROR_LENGTH]


def last_line(text: str) -> str:
    """Return the last line of the errors that a process printed, which says most."""
    return text.strip().rpartition("\n")[2]


def read_outcome(job: Job, error: str | None) -> Outcome:
    """Return the outcome of a job whose directory is on this machine."""
    if error is not None:
        return Outcome(job, error=error)
    try:
        record = job.directory.read_record()
    except SteradError as error:
        return Outcome(job, error=str(error))
    return Outcome(job, record, None if record else "it ended without a record")
