"""`sterad study`: a TOML grid whose missing runs are run, several at a time."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from sterad.cli.launching import parse_with_launcher
from sterad.cli.study_view import study_view
from sterad.experiments.execution import Execution
from sterad.experiments.launchers import Job, Launcher
from sterad.experiments.study import Study
from sterad.report.tables import terminal_table


@dataclass(frozen=True)
class Options:
    """Run the missing runs of a TOML grid and print mean ± std over seeds."""

    file: Annotated[Path, tyro.conf.Positional]
    """The study: [fixed] values, [axes] with a list each, [method.NAME] values."""
    out: Path = Path("runs")
    """Where the directories of runs are."""
    dry_run: bool = False
    """Only print the runs and whether each is done."""
    threads: int | None = None
    """Processor threads of each new run; the cores are shared out by default."""
    device: str | None = None
    """Device of new runs on this machine; cuda where there is one, else cpu."""
    sink: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """Also send events there, once for each: see `sterad list`."""
    plugin: tuple[Path, ...] = ()
    """Python files that register your own methods, datasets, streams."""


def study(options: Options, launcher: Launcher) -> int:
    """Run what is missing; return 1 where a run failed."""
    wanted, out = Study.from_toml(options.file), options.out
    missing = wanted.missing(out)
    if options.dry_run:
        for config in wanted.configs:
            print(f"{'missing' if config in missing else 'done   '} {config.id}")
        return 0
    execution = Execution.chosen(options.device, options.threads)
    jobs = [
        Job(config, out, execution, plugins=options.plugin, sinks=options.sink)
        for config in missing
    ]
    if jobs:
        jobs[0].own_sinks()  # one that is unknown or not installed is told before anything starts
    failed = 0
    with study_view(wanted.title, len(wanted.configs), len(missing)) as view:
        for outcome in launcher.launch(jobs, view.heard):
            view.ended(outcome)
            failed += outcome.error is not None
    Console().print(terminal_table(wanted.records(out)))
    if failed:
        print(f"sterad: {failed} of {len(jobs)} runs failed; the rest is kept", file=sys.stderr)
    return 1 if failed else 0


def main(argv: list[str]) -> int:
    """Run the command."""
    return study(*parse_with_launcher(Options, argv, "sterad study"))
