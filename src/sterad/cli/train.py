"""`sterad train`: one run; the fields of method, dataset and stream are options."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.cli.components import Request, RequestParser
from sterad.cli.options import check_out
from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig, RunSettings
from sterad.experiments.launchers import Job
from sterad.experiments.resume import describe_earlier_versions
from sterad.loggers import progress_logger
from sterad.results.record import METRICS
from sterad.validation import Count


@dataclass(frozen=True)
class OutputOptions:
    """Where a run is written, and which files are read; nothing here changes its id."""

    out: Path = Path("runs")
    """Folder of all runs; each run has its own directory there."""
    checkpoint_every: Count | None = None
    """Steps between checkpoints; the end of a task has one as well (default: chosen so that
    checkpoints take less than 1 % of the time)."""
    accept_changes: bool = False
    """Continue an interrupted run although its data or code, a library or the processor changed;
    the record says so."""
    config: Path | None = None
    """A TOML file of values; the command line overrides it."""
    tuned: str | None = None
    """Tuned values of the method: a name from `sterad list METHOD`, or a file; --config and the
    command line override them."""
    logger: tuple[str, ...] = ()
    """Send events to this logger as well (repeatable); `sterad list loggers` lists all."""
    plugin: tuple[Path, ...] = ()
    """A Python file that registers your own methods, laws, datasets, ... (repeatable)."""

    def create_job(self, config: RunConfig, execution: Execution) -> Job:
        """Return the run of a config that is written there."""
        return Job(
            config,
            self.out,
            execution,
            self.checkpoint_every,
            self.plugin,
            self.logger,
            self.accept_changes,
        )


def parse_train_request(argv: Sequence[str]) -> Request:
    """Parse the command line of `sterad train`."""
    about = (
        "Train a method on a stream, of which each image is seen once. The same command again "
        "continues an interrupted run, or prints the result of a finished one."
    )
    sections = {"Run": (RunSettings, OutputOptions), "Execution": (Execution,)}
    kinds = ("dataset", "stream")
    return RequestParser("sterad train", about, "method", kinds, sections).parse(argv)


def main(argv: Sequence[str]) -> int:
    """Run, or continue a run, and print its metrics."""
    request = parse_train_request(argv)
    config, output = request.config(), request.take(OutputOptions)
    check_out(output.out)
    job = output.create_job(config, request.execution())
    was_finished = job.directory.record.exists()
    for warning in [] if was_finished else describe_earlier_versions(config, output.out):
        print(f"sterad: {warning}", file=sys.stderr)
    record = job.run([] if was_finished else [progress_logger(config.id)])
    print(f"{record.id}{' (finished before)' if was_finished else ''}")
    for name in METRICS:
        value = getattr(record, name)
        if value is not None:
            print(f"  {name.replace('_', ' '):28} {value:8.2%}")
    print(f"  {'seconds':28} {record.seconds:8.1f}")
    print(job.directory.record)
    return 0
