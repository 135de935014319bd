"""`sterad train`: the main job. Fields of method, dataset and stream are options by their names."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.cli.components import request
from sterad.engine.execution import Execution
from sterad.experiments.config import RunSettings, earlier_versions
from sterad.experiments.launchers import Job
from sterad.loggers import progress_logger
from sterad.results.record import METRICS, RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.validation import Count


@dataclass(frozen=True)
class OutputOptions:
    """Where a run is written, and which files it is made from: nothing here changes its id."""

    out: Path = Path("runs")
    """Folder of all runs; each has a directory of its own there."""
    checkpoint_every: Count | None = None
    """Steps between checkpoints, beside those at the ends of tasks (default: as often as they take
    less than 1 % of the time)."""
    config: Path | None = None
    """A TOML file with values by their names; options of the command line stand above it."""
    tuned: str | None = None
    """Tuned values of this method: a name from `sterad list METHOD`, or the path of a file; the
    values of --config and of the command line stand above them."""
    logger: tuple[str, ...] = ()
    """Send events to this logger as well (repeatable): see `sterad list`."""
    plugin: tuple[Path, ...] = ()
    """A Python file that registers your own methods, datasets, streams (repeatable)."""


def main(argv: Sequence[str]) -> int:
    """Read the options of the named method, dataset and stream; run; print what came of it."""
    own = {"Run": (RunSettings, OutputOptions), "Execution": (Execution,)}
    about = "Learn from a stream seen once; the same command again continues, or prints the result."
    asked = request(argv, "sterad train", about, "method", ("dataset", "stream"), own)
    config, where = asked.config(), asked.take(OutputOptions)
    job = Job(
        config, where.out, asked.execution(), where.checkpoint_every, where.plugin, where.logger
    )
    finished = job.directory.record.exists()
    for sentence in [] if finished else earlier_versions(config, where.out):
        print(f"sterad: {sentence}", file=sys.stderr)
    record = job.run([] if finished else [progress_logger(config.id)])
    _print(record, job.directory, finished)
    return 0


def _print(record: RunRecord, place: RunDirectory, finished: bool) -> None:
    print(f"{record.id}{' (finished before)' if finished else ''}")
    for name in METRICS:
        value = getattr(record, name)
        if value is not None:
            print(f"  {name.replace('_', ' '):28} {value:8.2%}")
    print(f"  {'seconds':28} {record.seconds:8.1f}")
    print(place.record)
    sys.stdout.flush()
