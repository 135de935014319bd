"""`sterad study`: a TOML grid whose missing runs are run, several at a time."""

import sys
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from sterad.cli.study_view import study_view
from sterad.experiments.execution import Execution
from sterad.experiments.launchers import Job, Local
from sterad.experiments.study import Study
from sterad.registry import load_plugin
from sterad.report.tables import terminal_table


def study(
    file: Annotated[Path, tyro.conf.Positional],
    out: Path = Path("runs"),
    dry_run: bool = False,
    workers: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    plugin: tuple[Path, ...] = (),
) -> int:
    """Run the missing runs of a TOML grid and print mean ± std over seeds.

    Args:
        file: The study: [fixed] values, [axes] with a list each, [method.NAME] values.
        out: Where the directories of runs are.
        dry_run: Only print the runs and whether each is done.
        workers: Runs at a time; one for each core by default.
        threads: Processor threads of each new run; the cores are shared out by default.
        device: Device of new runs; cuda where there is one, else cpu.
        plugin: Python files that register your own methods, datasets, streams.
    """
    for one in plugin:
        load_plugin(one)
    wanted = Study.from_toml(file)
    missing = wanted.missing(out)
    if dry_run:
        for config in wanted.configs:
            print(f"{'missing' if config in missing else 'done   '} {config.id}")
        return 0
    execution = Execution.chosen(device, threads)
    jobs = [Job(config, out, execution, plugins=plugin) for config in missing]
    failed = 0
    with study_view(wanted.title, len(wanted.configs), len(missing)) as view:
        for outcome in Local(workers).launch(jobs, view.heard):
            view.ended(outcome)
            failed += outcome.error is not None
    Console().print(terminal_table(wanted.records(out)))
    if failed:
        print(f"sterad: {failed} of {len(jobs)} runs failed; the rest is kept", file=sys.stderr)
    return 1 if failed else 0


def main(argv: list[str]) -> int:
    """Run the command."""
    return tyro.cli(study, args=argv, prog="sterad study")
