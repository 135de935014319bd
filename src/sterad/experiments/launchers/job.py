"""Job: one run as plain values that can go to another process or machine, and what came of it."""

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

Watch = Callable[[str, Mapping[str, Any]], bool | None]
"""Called with the id of a run and one of its events; a true answer asks for the run's end.

A launcher that cannot end a single run may let it go on: whoever asked expects both.
"""


@dataclass(frozen=True)
class Job:
    """What to run, where its directory is, and how it is computed."""

    config: RunConfig
    out: Path
    execution: Execution
    checkpoint_every: int | None = None
    plugins: tuple[Path, ...] = ()
    loggers: tuple[str, ...] = ()
    """Names of loggers that take the events beside the run's own files."""

    @property
    def id(self) -> str:
        """Return the id of the run."""
        return self.config.id

    def to_json(self) -> str:
        """Return a line of text that `from_json` understands on any machine that sees the files."""
        plain = {
            "config": self.config.to_dict(places=True),
            "out": str(self.out),
            "execution": dataclasses.asdict(self.execution),
            "checkpoint_every": self.checkpoint_every,
            "plugins": [str(file) for file in self.plugins],
            "loggers": self.loggers,
        }
        return json.dumps(plain)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Load the plugins, then return the job."""
        plain = json.loads(text)
        plugins = tuple(Path(file) for file in plain["plugins"])
        for file in plugins:
            load_plugin(file)
        return cls(
            RunConfig.from_dict(plain["config"]),
            Path(plain["out"]),
            build(Execution, plain["execution"]),
            plain["checkpoint_every"],
            plugins,
            tuple(plain["loggers"]),
        )

    @property
    def place(self) -> RunDirectory:
        """Return the directory of the run."""
        return RunDirectory(self.out, self.id)

    def own_loggers(self) -> list[Logger]:
        """Return the loggers that are asked for by name; nothing is opened yet."""
        folder, config = self.place.path, self.config.to_dict()
        return [LOGGERS[name](self.id, folder, config) for name in self.loggers]

    def run(self, loggers: Sequence[Logger] = ()) -> RunRecord:
        """Run, or continue, or read."""
        opened = [*self.own_loggers(), *loggers]
        return run(self.config, self.out, self.execution, self.checkpoint_every, opened)

    def reserved(self, cpus: float, gpus: float) -> Self:
        """Return the job as it is computed elsewhere: on what is reserved for it there."""
        threads = self.execution.threads or max(1, int(cpus))
        device = "cuda" if gpus else "cpu"
        execution = dataclasses.replace(self.execution, threads=threads, device=device)
        return dataclasses.replace(self, execution=execution)


@dataclass(frozen=True)
class Outcome:
    """What came of a job: a record, or a sentence about what went wrong."""

    job: Job
    record: RunRecord | None = None
    error: str | None = None


class Launcher(Protocol):
    """Anything that can bring jobs to their end; every call runs only what is missing."""

    def launch(self, jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
        """Yield the outcome of each job as it ends; one that fails does not stop the others."""


LAUNCHERS: Registry[type[Launcher]] = Registry("launcher", "sterad.launchers")


def check_data(jobs: Sequence[Job]) -> None:
    """Refuse runs whose data are not on this machine, before the first of them is started."""
    for described in dict.fromkeys(job.config.dataset.fields for job in jobs):
        if hasattr(described, "require"):
            described.require()


def attempted(text: str, loggers: Sequence[Logger] = ()) -> str | None:
    """Run the job of a text; return nothing, or what went wrong as a sentence.

    What nobody foresaw leaves a traceback beside the run's files.
    """
    place = None
    try:
        job = Job.from_json(text)
        place = job.place
        job.run(loggers)
    except SteradError as error:
        return str(error)
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return f"{said}; see {str(_traced(place.path))!r}" if place else said
    return None


def _traced(folder: Path) -> Path:
    file = folder / "traceback.txt"
    with contextlib.suppress(OSError):  # a full disk has been told of already
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(traceback.format_exc())
    return file


def ended(job: Job, error: str | None) -> Outcome:
    """Return the outcome of a job whose files are on this machine's disk."""
    if error is not None:
        return Outcome(job, error=error)
    try:
        record = job.place.read_record()
    except SteradError as error:
        return Outcome(job, error=str(error))
    return Outcome(job, record, None if record else "it ended without a record")
