"""`sterad study`: a TOML grid, one run after another, missing runs only."""

import sys
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from sterad.experiments.config import RunConfig
from sterad.experiments.execution import Execution
from sterad.experiments.run import run
from sterad.experiments.study import Study
from sterad.registry import load_plugin
from sterad.report.tables import terminal_table
from sterad.results.record import RunRecord
from sterad.sinks import progress_sink


def study(
    file: Annotated[Path, tyro.conf.Positional],
    out: Path = Path("runs"),
    dry_run: bool = False,
    threads: int | None = None,
    device: str | None = None,
    plugin: tuple[Path, ...] = (),
) -> None:
    """Run the missing runs of a TOML grid one after another and print mean ± std over seeds.

    Args:
        file: The study: [fixed] values, [axes] with a list each, [method.NAME] values.
        out: Where the directories of runs are.
        dry_run: Only print the runs and whether each is done.
        threads: Processor threads of new runs; as the images ask by default.
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
        return
    execution = Execution.chosen(device, threads)
    done = len(wanted.configs) - len(missing)
    print(f"{wanted.title}: {len(wanted.configs)} runs, {done} done before", file=sys.stderr)

    def run_one(config: RunConfig) -> RunRecord:
        number = 1 + wanted.configs.index(config)
        title = f"[{number}/{len(wanted.configs)}] {config.id}"
        return run(config, out, execution, sinks=[progress_sink(title)])

    Console().print(terminal_table(wanted.run(out, run_one)))


def main(argv: list[str]) -> int:
    """Run the command."""
    tyro.cli(study, args=argv, prog="sterad study")
    return 0
