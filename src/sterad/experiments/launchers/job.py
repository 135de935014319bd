"""Job: one run as plain values that can go to another process or machine, and what came of it."""

import dataclasses
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.execution import Execution
from sterad.experiments.fields import build
from sterad.experiments.run import run
from sterad.registry import Registry, load_plugin
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.sinks import Sink

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
    checkpoint_every: int = 500
    plugins: tuple[Path, ...] = ()

    @property
    def id(self) -> str:
        """Return the id of the run."""
        return self.config.id

    def to_json(self) -> str:
        """Return a line of text that `from_json` understands on any machine that sees the files."""
        plain = {
            "config": self.config.plain(places=True),
            "out": str(self.out),
            "execution": dataclasses.asdict(self.execution),
            "checkpoint_every": self.checkpoint_every,
            "plugins": [str(file) for file in self.plugins],
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
            RunConfig.from_plain(plain["config"]),
            Path(plain["out"]),
            build(Execution, plain["execution"]),
            plain["checkpoint_every"],
            plugins,
        )

    def run(self, sinks: Sequence[Sink] = ()) -> RunRecord:
        """Run, or continue, or read."""
        return run(self.config, self.out, self.execution, self.checkpoint_every, sinks)


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


def attempted(job: Job, sinks: Sequence[Sink] = ()) -> Outcome:
    """Run a job; what goes wrong becomes a sentence, and a traceback beside the run's files."""
    try:
        return Outcome(job, job.run(sinks))
    except SteradError as error:
        return Outcome(job, error=str(error))
    except Exception as error:
        trace = RunDirectory(job.out, job.id).path / "traceback.txt"
        trace.parent.mkdir(parents=True, exist_ok=True)
        trace.write_text(traceback.format_exc())
        return Outcome(job, error=f"{type(error).__name__}: {error}; see {str(trace)!r}")


def finished(job: Job) -> Outcome:
    """Return what a job left on this machine's disk."""
    try:
        record = RunDirectory(job.out, job.id).read_record()
    except SteradError as error:
        return Outcome(job, error=str(error))
    return Outcome(job, record, None if record else "it ended without a record")
