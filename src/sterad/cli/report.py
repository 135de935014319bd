"""`sterad report`: write tables and one HTML page from finished runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.cli.options import parse_options, positional
from sterad.report.table_formats import terminal_notes, to_terminal
from sterad.report.tables import MetricTable
from sterad.report.write import write_report


@dataclass(frozen=True)
class ReportOptions:
    """Print the tables of the finished runs under RUNS and write an HTML page with all figures.

    Writes RUNS/report.html, one self-contained page, and report.md, report.tex (booktabs),
    report-runs.csv and report-cells.csv. The last line printed is the path of the page.
    """

    runs: Path = positional("RUNS", Path("runs"))
    """Folder of runs, one directory each, or of studies that contain runs."""
    figures: bool = False
    """Also write every figure as PDF and PNG, to RUNS/report-figures."""
    paper: bool = False
    """Also compare the runs with the numbers and claims of the paper."""
    equal_cost: bool = False
    """Compare a method only with those that pass as many pixels through their networks per batch of
    the stream, up to 10 % more: tables get a column for each band of equal cost."""
    quiet: bool = False
    """Print only the path of the page."""


def _print_tables(tables: Sequence[MetricTable]) -> None:
    from sterad.cli.terminal import make_console, widen_for_file

    console = make_console()
    for table in tables:
        rich_table = to_terminal(table, has_notes=False)
        widen_for_file(console, rich_table)
        console.print(rich_table)
    for note in terminal_notes(tables):
        console.print(note)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: ReportOptions = parse_options(ReportOptions, argv, "sterad report")
    page = write_report(
        options.runs,
        figures=options.figures,
        show_tables=None if options.quiet else _print_tables,
        paper=options.paper,
        equal_cost=options.equal_cost,
    )
    print(page)
    return 0
