"""`sterad report`: from finished runs to tables and one page."""

from pathlib import Path
from typing import Annotated

import tyro

from sterad.report.tables import MetricTable, terminal
from sterad.report.write import write_report


def report(
    runs: Annotated[Path, tyro.conf.Positional] = Path("runs"),
    figures: bool = False,
    quiet: bool = False,
) -> None:
    """Print the tables of the finished runs under RUNS and write them with all figures.

    Beside RUNS/report.html, one page that needs nothing else, come report.md, report.tex
    (booktabs), report-runs.csv and report-cells.csv. The last line printed is the page's path.

    Args:
        runs: Folder of runs, one directory each, or of studies that have these.
        figures: Also write every figure as PDF and PNG, to RUNS/report-figures.
        quiet: Print the page's path alone.
    """
    print(write_report(runs, figures=figures, show=None if quiet else _show))


def _show(table: MetricTable) -> None:
    from rich.console import Console

    console = Console()
    shown = terminal(table)
    # A file has no edge: there a table is as wide as it is.
    width = console.width if console.is_terminal else max(80, console.measure(shown).maximum)
    Console(width=width).print(shown)


def main(argv: list[str]) -> int:
    """Run the command."""
    tyro.cli(report, args=argv, prog="sterad report")
    return 0
