"""`sterad report`: from finished runs to tables and one page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.cli.options import parse_options, positional
from sterad.report.tables import MetricTable, terminal
from sterad.report.write import write_report


@dataclass(frozen=True)
class ReportOptions:
    """Print the tables of the finished runs under RUNS and write them with all figures.

    Beside RUNS/report.html, one page that needs nothing else, come report.md, report.tex
    (booktabs), report-runs.csv and report-cells.csv. The last line printed is the page's path.
    """

    runs: Path = positional("RUNS", Path("runs"))
    """Folder of runs, one directory each, or of studies that have these."""
    figures: bool = False
    """Also write every figure as PDF and PNG, to RUNS/report-figures."""
    quiet: bool = False
    """Print the page's path alone."""


def _show(table: MetricTable) -> None:
    from rich.console import Console

    console = Console()
    shown = terminal(table)
    # A file has no edge: there a table is as wide as it is.
    width = console.width if console.is_terminal else max(80, console.measure(shown).maximum)
    Console(width=width).print(shown)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: ReportOptions = parse_options(ReportOptions, argv, "sterad report")
    show = None if options.quiet else _show
    print(write_report(options.runs, figures=options.figures, show=show))
    return 0
