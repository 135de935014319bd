"""Two runs side by side in the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sterad.cli.show import CURVE_WIDTH
from sterad.cli.terminal import make_table, print_rows, print_table
from sterad.report.comparison import LETTERS, Comparison, ValueRow
from sterad.report.sparkline import curve_line


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print what differs in settings, metrics, tasks, cost and curves."""
    pairs = list(zip(LETTERS, comparison.runs, strict=True))
    for letter, run in pairs:
        console.print(Text(f"{letter}  {run.id} ({run.state})", style="bold"))
    _print_differences(console, "Settings that differ", comparison.settings)
    _print_differences(console, "Execution, code and data that differ", comparison.execution)
    if not comparison.settings and not comparison.execution:
        console.print("\nSettings, execution, code and data are equal.")
    total = max(run.samples for run in comparison.runs)
    lines = [(letter, curve_line(run.curve, CURVE_WIDTH, total)) for letter, run in pairs]
    print_rows(console, "Accuracy on seen classes along the stream", lines)
    _print_values(console, "Metrics (%)", comparison.metrics, "B - A")
    _print_values(console, "Tasks at the end (%)", comparison.tasks, "B - A")
    _print_values(console, "Cost", comparison.cost, "B / A")


def _print_differences(console: Console, title: str, rows: Sequence[tuple[str, str, str]]) -> None:
    table = make_table("", *LETTERS)
    for path, first, second in rows:
        table.add_row(Text(f"  {path}"), Text(first), Text(second))
    print_table(console, table, title)


def _print_values(console: Console, title: str, rows: Sequence[ValueRow], last: str) -> None:
    table = make_table("", *LETTERS, last)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*map(Text, (f"  {row.name}", row.first, row.second, row.difference)))
    print_table(console, table, title)
