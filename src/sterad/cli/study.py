"""`sterad study`: a TOML grid whose missing runs are run, several at a time."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from sterad.cli.components import parse_request
from sterad.cli.options import positional
from sterad.cli.study_view import spoken, study_view
from sterad.engine.execution import Execution
from sterad.experiments.config import earlier_versions
from sterad.experiments.cost import estimate
from sterad.experiments.launchers import Job, Launcher, Local, check_data
from sterad.experiments.study import Study
from sterad.report.tables import terminal_table
from sterad.results.reading import left_out_in_words, read_records


@dataclass(frozen=True)
class StudyOptions:
    """Which study, and where its runs are."""

    file: Path = positional("FILE")
    """The study: [fixed] values, [axes] with a list each, [method.NAME] values."""
    out: Path = Path("runs")
    """Folder of all runs; each has a directory of its own there."""
    dry_run: bool = False
    """Only print the runs, whether each is done, and an estimate of what the others cost."""
    logger: tuple[str, ...] = ()
    """Send events to this logger as well (repeatable): see `sterad list`."""
    plugin: tuple[Path, ...] = ()
    """A Python file that registers your own methods, datasets, streams (repeatable)."""


def study(options: StudyOptions, execution: Execution, launcher: Launcher) -> int:
    """Run what is missing; return 1 where a run failed."""
    wanted, out = Study.from_toml(options.file), options.out
    missing = wanted.missing(out)
    if options.dry_run:
        _announce(wanted, out)
        return 0
    for sentence in (said for config in missing for said in earlier_versions(config, out)):
        print(f"sterad: {sentence}", file=sys.stderr)
    jobs = [
        Job(config, out, execution, plugins=options.plugin, loggers=options.logger)
        for config in missing
    ]
    if isinstance(launcher, Local):  # elsewhere the data lie on the workers' machines
        check_data(jobs)
    if jobs:
        jobs[0].own_loggers()  # one that is unknown or not installed is told before anything starts
    failed = 0
    with study_view(wanted.title, len(wanted.configs), len(missing)) as view:
        for outcome in launcher.launch(jobs, view.heard):
            view.ended(outcome)
            failed += outcome.error is not None
    records, left_out = wanted.records(out)
    if records:
        Console().print(terminal_table(records))
    for sentence in left_out_in_words(records, left_out):
        print(f"sterad: {sentence}", file=sys.stderr)
    if failed:
        print(f"sterad: {failed} of {len(jobs)} runs failed; the rest is kept", file=sys.stderr)
    return 1 if failed or left_out else 0


def _announce(wanted: Study, out: Path) -> None:
    """Print every run, whether it is done, and what it will cost one after the other."""
    missing, total = set(wanted.missing(out)), 0.0
    records, left_out = read_records(out) if out.is_dir() else ([], [])
    done = {record.id for record in records}
    for config in wanted.configs:
        if config not in missing:
            print(f"{'done' if config.id in done else 'unread':7} {config.id}")
            continue
        cost = estimate(config, records)
        total += cost.seconds
        print(f"missing {config.id}  about {spoken(cost.seconds)} ({cost.basis})")
    print(f"{len(missing)} of {len(wanted.configs)} runs to do, about {spoken(total)} one by one")
    for sentence in left_out_in_words(records, left_out):
        print(f"sterad: {sentence}", file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    own = {"Study": (StudyOptions,), "Execution": (Execution,)}
    about = "Run the missing runs of a TOML grid and print mean ± std over seeds."
    asked = parse_request(argv, "sterad study", about, None, ("launcher",), own)
    return study(asked.take(StudyOptions), asked.execution(), asked.component("launcher"))
