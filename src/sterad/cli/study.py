"""`sterad study`: run the missing runs of a TOML grid, several at a time."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from sterad.cli.components import RequestParser
from sterad.cli.options import check_out, positional
from sterad.engine.execution import Execution
from sterad.experiments.cost import estimate
from sterad.experiments.launchers import Job, Local, Outcome, check_data
from sterad.experiments.resume import describe_earlier_versions
from sterad.experiments.study import Study
from sterad.experiments.study_files import find_study
from sterad.report.table_formats import terminal_table
from sterad.results.run_directory import describe_left_out, read_records


@dataclass(frozen=True)
class StudyOptions:
    """Which study to run, and where its runs are written."""

    study: Path = positional("STUDY")
    """The name of a shipped study, such as demo or paper-clear, or a TOML file with [fixed] values,
    [axes] with a list each, and [method.NAME] values."""
    out: Path = Path("runs")
    """Folder of all runs; each run has its own directory there."""
    dry_run: bool = False
    """Only print the runs, whether each is done, and the estimated cost of the others."""
    accept_changes: bool = False
    """Continue interrupted runs although their data or code, a library or the processor changed;
    their records say so."""
    logger: tuple[str, ...] = ()
    """Send events to this logger as well (repeatable): see `sterad list`."""
    plugin: tuple[Path, ...] = ()
    """A Python file that registers your own methods, laws, datasets, ... (repeatable)."""


class ProgressView:
    """Prints a line for each finished run and, on a terminal, a table of the running ones."""

    def __init__(self, title: str, missing: int) -> None:
        self.title, self.missing = title, missing
        self.done = self.failed = 0
        self.best: tuple[float, str] | None = None
        self.running: dict[str, Mapping[str, Any]] = {}
        self.started = time.monotonic()
        self.live: Live | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self.live = Live(get_renderable=self.render, console=Console(stderr=True))
            self.live.start()
        self.print(self.title)
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def print(self, text: str) -> None:
        """Print a line, on a terminal above the table."""
        if self.live is not None:
            self.live.console.print(text, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def on_event(self, run: str, event: Mapping[str, Any]) -> None:
        """Remember the last values that a run has sent."""
        self.running[run] = {**self.running.get(run, {}), **event}

    def on_run_end(self, run: str) -> None:
        """Remove a run from those that are displayed as running."""
        self.running.pop(run, None)

    def on_outcome(self, outcome: Outcome) -> None:
        """Count and print the outcome of a run."""
        self.on_run_end(outcome.job.id)
        if (record := outcome.record) is None:
            self.failed += 1
            self.print_result(outcome.job.id, None, f"failed: {outcome.error}")
        else:
            accuracy = record.final_average_accuracy
            result = f"{accuracy:.2%} in {record.seconds:.0f} s"
            self.print_result(outcome.job.id, accuracy, result)

    def print_result(self, name: str, accuracy: float | None, result: str) -> None:
        """Count a run or trial that has ended, and print its result."""
        self.done += 1
        if accuracy is not None:
            self.best = max(self.best or (accuracy, name), (accuracy, name))
        self.print(f"[{self.done}/{self.missing}] {name}: {result}; {self.time_left()}")

    def time_left(self) -> str:
        """Estimate the remaining time from the mean time so far."""
        if not self.done:
            return "time left unknown"
        seconds = (self.missing - self.done) * (time.monotonic() - self.started) / self.done
        return f"{format_duration(seconds)} left"

    def render(self) -> RenderableType:
        """Return the table and a line of totals."""
        table = Table(box=None, pad_edge=False)
        for name in ("running", "step", "accuracy so far", "seconds"):
            table.add_column(name)
        for run, event in self.running.items():
            steps = f"{event['step']} of {event['steps'] or '?'}"
            accuracy = f"{event['accuracy']:.2%}" if "accuracy" in event else "-"
            table.add_row(run, steps, accuracy, f"{event['seconds']:.0f}")
        best = "" if self.best is None else f", best so far {self.best[0]:.2%} ({self.best[1]})"
        failed = f", {self.failed} failed" if self.failed else ""
        return Group(table, f"{self.done} of {self.missing} done{failed}{best}, {self.time_left()}")


def format_duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours.

    >>> format_duration(45), format_duration(600), format_duration(9000)
    ('45 s', '10 min', '2.5 h')
    """
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def main(argv: Sequence[str]) -> int:
    """Run the missing runs and print the results; return 1 if a run failed."""
    option_groups = {"Study": (StudyOptions,), "Execution": (Execution,)}
    about = "Run the missing runs of a TOML grid and print mean ± std over seeds."
    request = RequestParser("sterad study", about, None, ("launcher",), option_groups).parse(argv)
    options: StudyOptions = request.take(StudyOptions)
    execution, launcher = request.execution(), request.component("launcher")
    study, out = Study.from_toml(find_study(options.study)), options.out
    check_out(out)
    missing = study.missing(out)
    if options.dry_run:
        _print_plan(study, out)
        return 0
    _print_notes([note for config in missing for note in describe_earlier_versions(config, out)])
    jobs = [
        Job(
            config,
            out,
            execution,
            plugins=options.plugin,
            loggers=options.logger,
            accept_changes=options.accept_changes,
        )
        for config in missing
    ]
    if isinstance(launcher, Local):  # other launchers read the data on the workers' machines
        check_data(jobs)
    if jobs:
        jobs[0].create_loggers()  # report an unknown or missing logger before the first run
    total = len(study.configs)
    title = f"{study.title}: {total} runs, {total - len(jobs)} done before"
    with ProgressView(title, len(jobs)) as view:
        for outcome in launcher.launch(jobs, view.on_event):
            view.on_outcome(outcome)
    records, unreadable = study.records(out)
    if records:
        Console().print(terminal_table(records))
    _print_notes(describe_left_out(records, unreadable))
    if view.failed:
        _print_notes([f"{view.failed} of {len(jobs)} runs failed; the others are kept"])
    return 1 if view.failed or unreadable else 0


def _print_plan(study: Study, out: Path) -> None:
    """Print every run, whether it is done, and its estimated cost."""
    missing, total = set(study.missing(out)), 0.0
    records, unreadable = read_records(out) if out.is_dir() else ([], [])
    done = {record.id for record in records}
    for config in study.configs:
        if config not in missing:
            print(f"{'done' if config.id in done else 'unread':7} {config.id}")
            continue
        seconds, basis = estimate(config, records)
        total += seconds
        print(f"missing {config.id}  about {format_duration(seconds)} ({basis})")
    duration = format_duration(total)
    print(f"{len(missing)} of {len(study.configs)} runs to do, about {duration} one by one")
    _print_notes(describe_left_out(records, unreadable))


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"sterad: {note}", file=sys.stderr)
