"""Tables of mean ± standard deviation over seeds, for the terminal and for Markdown."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sterad.errors import SteradError
from sterad.results.grouping import Label, Layout, lay_out
from sterad.results.record import METRICS, RunRecord
from sterad.results.statistics import Summary, summarise

if TYPE_CHECKING:
    from rich.table import Table

HEADLINE = "final_average_accuracy"
DASH = "–"
_REMARKS = {
    "final_average_accuracy": "after the last image: mean over tasks, or over all test images "
    "where tasks have no announced end",
    "average_forgetting": "best earlier accuracy minus the final one; lower is better",
    "average_forgetting_released": "the same as the paper's released code has it, never negative",
    "backward_transfer": "final accuracy minus the one right after learning; higher is better",
    "anytime_accuracy": "mean of the accuracy on all seen classes along the stream",
    "test_then_train_accuracy": "each image is answered before it is learnt",
}


@dataclass(frozen=True)
class MetricTable:
    """One metric of every group of runs."""

    metric: str
    columns: tuple[Label, ...]
    rows: tuple[tuple[Label, tuple[Summary | None, ...]], ...]
    """A method and its cells; None where nothing was run or the metric does not exist."""

    @property
    def title(self) -> str:
        """The metric in words."""
        return f"{title(self.metric)} (%)"

    @property
    def remark(self) -> str:
        """What the metric means."""
        return _REMARKS.get(self.metric, "")

    @property
    def empty(self) -> bool:
        """Whether no run has the metric."""
        return all(cell is None for _, cells in self.rows for cell in cells)


def title(metric: str) -> str:
    """Write the name of a metric as a title.

    >>> title("anytime_accuracy")
    'Anytime accuracy'
    """
    return metric.replace("_", " ").capitalize()


def metric_table(layout: Layout, metric: str = HEADLINE) -> MetricTable:
    """Summarise one metric over the seeds of every cell."""
    if metric not in METRICS:
        near = difflib.get_close_matches(metric, METRICS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SteradError(f"unknown metric {metric!r}: {hint}known are {', '.join(METRICS)}")
    columns = range(len(layout.columns))
    rows = tuple(
        (label, tuple(_summary(layout.cell(row, column), metric) for column in columns))
        for row, label in enumerate(layout.rows)
    )
    return MetricTable(metric, layout.columns, rows)


def _summary(records: Iterable[RunRecord], metric: str) -> Summary | None:
    values = [getattr(record, metric) for record in records]
    known = [value for value in values if value is not None]
    return summarise(known) if known else None


def percent(fraction: float | None) -> str:
    """Write a fraction in per cent with two decimals.

    >>> percent(0.92314), percent(-0.00001), percent(None)
    ('92.31', '0.00', '–')
    """
    if fraction is None:
        return DASH
    return f"{round(100 * fraction, 2) + 0.0:.2f}"  # + 0.0 turns -0.0 into 0.0


def write(summary: Summary | None) -> str:
    """Write mean ± standard deviation in per cent and the number of seeds.

    >>> write(Summary(0.9231, 0.0042, 3)), write(Summary(0.5, None, 1)), write(None)
    ('92.31 ± 0.42 (n=3)', '50.00 (n=1)', '–')
    """
    if summary is None:
        return DASH
    spread = "" if summary.std is None else f" ± {percent(summary.std)}"
    return f"{percent(summary.mean)}{spread} (n={summary.n})"


def markdown_table(records: Iterable[RunRecord], metric: str = HEADLINE) -> str:
    """Return the table of one metric in Markdown."""
    return markdown(metric_table(lay_out(records), metric))


def markdown(table: MetricTable) -> str:
    """Write a table in Markdown, one row per method."""
    lines = [["method", *(column.text for column in table.columns)]]
    lines += [[label.text, *map(write, cells)] for label, cells in table.rows]
    written = ["| " + " | ".join(map(_harmless, line)) + " |" for line in lines]
    written.insert(1, "|:--|" + "--:|" * len(table.columns))
    return "\n".join(written) + "\n"


def _harmless(text: str) -> str:
    return re.sub(r"([\\|<*`])", r"\\\1", " ".join(text.split()))


def terminal_table(records: Iterable[RunRecord], metric: str = HEADLINE) -> "Table":
    """Return the table of one metric for a rich console."""
    from rich.table import Table
    from rich.text import Text

    table = metric_table(lay_out(records), metric)
    shown = Table(title=Text(table.title), caption=Text(table.remark))
    shown.add_column("method")
    for column in table.columns:
        shown.add_column(Text("\n".join(column.parts)), justify="right", no_wrap=True)
    for label, cells in table.rows:
        shown.add_row(Text(label.text), *(Text(write(cell)) for cell in cells))
    return shown
