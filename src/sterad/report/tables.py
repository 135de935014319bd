"""Tables of mean ± standard deviation over seeds, marked where differences are real."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sterad.errors import SteradError
from sterad.results.comparison import BRIEFLY, RULE, Comparison, Seeds, Standing, standing
from sterad.results.grouping import Label, Layout, lay_out, spell
from sterad.results.record import METRICS, RunRecord
from sterad.results.statistics import Summary, ranks, summarize

if TYPE_CHECKING:
    from rich.table import Table

HEADLINE = "final_average_accuracy"
DASH = "–"
LOWER_IS_BETTER = ("average_forgetting", "average_forgetting_released")
UPPER_BOUND = "joint"
"""The method that sees everything at once: it stands in the tables and competes with nobody."""
_REMARKS = {
    "final_average_accuracy": "after the last image: mean over tasks, or over all test images "
    "where tasks have no announced end",
    "average_forgetting": "best earlier accuracy minus the final one; lower is better",
    "average_forgetting_released": "the same as the paper's released code has it, never negative",
    "backward_transfer": "final accuracy minus the one right after learning; higher is better",
    "anytime_accuracy": "mean of the accuracy on all seen classes along the stream",
    "test_then_train_accuracy": "each image is answered before it is learned",
}


Rows = tuple[tuple[Label, tuple[Summary | None, ...]], ...]


@dataclass(frozen=True)
class MetricTable:
    """One metric of every group of runs."""

    metric: str
    columns: tuple[Label, ...]
    rows: Rows
    """A method and its cells; None where nothing was run or the metric does not exist."""

    standings: tuple[Standing, ...] = ()
    """How the methods of each column stand to one another."""
    ranks: tuple[float | None, ...] = ()
    """Mean place of each row over the columns, among those that were run in all of them; empty
    where there are not two columns and two such rows."""
    precisions: tuple[str, ...] = ()
    """What the encoders were computed in."""

    def mark(self, row: int, column: int) -> str:
        """Return best, second or nothing."""
        return self.standings[column].mark(row) if self.standings else ""

    def tests(self) -> list[tuple[int, Comparison]]:
        """Return every comparison with its column."""
        return [(c, test) for c, one in enumerate(self.standings) for test in one.comparisons]

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

    @property
    def footnotes(self) -> tuple[str, ...]:
        """What the marks and ranks mean, and why there are none where there are none."""
        notes = [RULE + "."] if any(one.comparisons for one in self.standings) else []
        notes += self.reasons
        if any(_bounds(label) for label, _ in self.rows):
            notes.append(f"{UPPER_BOUND} is an upper bound and takes no part in the comparison.")
        if self.ranks:
            notes.append("Rank: mean place over the columns, among methods run in all of them.")
        if len(self.precisions) > 1:
            names = " and ".join(self.precisions)
            notes.append(f"Some runs were computed in {names}: --precision makes them alike.")
        return tuple(notes)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why nothing is marked, where nothing is."""
        reasons: dict[str, list[str]] = {}
        for column, one in zip(self.columns, self.standings, strict=False):
            if one.unmarked:
                reasons.setdefault(one.unmarked, []).append(column.text)
        return tuple(
            f"Nothing is marked{_where(names, len(self.columns))}: {reason}."
            for reason, names in reasons.items()
        )


def _where(names: list[str], of: int) -> str:
    if len(names) == of:
        return ""
    return f" in {'; '.join(names)}" if len(names) <= 3 else f" in {len(names)} columns"


def _bounds(label: Label) -> bool:
    return label.parts[0] == UPPER_BOUND


def title(metric: str) -> str:
    """Write the name of a metric as a title.

    >>> title("anytime_accuracy")
    'Anytime accuracy'
    """
    return metric.replace("_", " ").capitalize()


def metric_table(layout: Layout, metric: str = HEADLINE) -> MetricTable:
    """Summarize one metric over the seeds of every cell."""
    if metric not in METRICS:
        near = difflib.get_close_matches(metric, METRICS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SteradError(f"unknown metric {metric!r}: {hint}known are {', '.join(METRICS)}")
    columns = range(len(layout.columns))
    rows = tuple(
        (label, tuple(_summary(layout.cell(row, column), metric) for column in columns))
        for row, label in enumerate(layout.rows)
    )
    standings = tuple(
        standing([_seeds(layout, row, column, metric) for row in range(len(rows))], _rises(metric))
        for column in columns
    )
    cells = (layout.cell(row, column) for row in range(len(rows)) for column in columns)
    precisions = sorted(
        {str(one.execution.get("precision", "float32")) for cell in cells for one in cell}
    )
    places = _average_ranks(rows, metric)
    return MetricTable(metric, layout.columns, rows, standings, places, tuple(precisions))


def _rises(metric: str) -> bool:
    return metric not in LOWER_IS_BETTER


def _seeds(layout: Layout, row: int, column: int, metric: str) -> Seeds | None:
    if _bounds(layout.rows[row]):
        return None
    found = {spell(r.config.get("seed")): getattr(r, metric) for r in layout.cell(row, column)}
    return {seed: value for seed, value in found.items() if value is not None}


def _average_ranks(rows: Rows, metric: str) -> tuple[float | None, ...]:
    sign = 1 if _rises(metric) else -1
    means = {
        row: [sign * cell.mean for cell in cells if cell is not None]
        for row, (label, cells) in enumerate(rows)
        if None not in cells and not _bounds(label)
    }
    places = [ranks(column) for column in zip(*means.values(), strict=True)]
    if len(means) < 2 or len(places) < 2:
        return ()
    found = dict(zip(means, zip(*places, strict=True), strict=True))
    return tuple(summarize(found[row]).mean if row in found else None for row in range(len(rows)))


def _summary(records: Iterable[RunRecord], metric: str) -> Summary | None:
    values = [getattr(record, metric) for record in records]
    known = [value for value in values if value is not None]
    return summarize(known) if known else None


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
    lines = [["method", *(_harmless(column.text) for column in table.columns)]]
    for row, (label, cells) in enumerate(table.rows):
        written = [
            _MARKDOWN[table.mark(row, column)].format(write(cell))
            for column, cell in enumerate(cells)
        ]
        lines.append([_harmless(label.text), *written])
    if table.ranks:
        for line, text in zip(lines, ["rank", *map(write_rank, table.ranks)], strict=True):
            line.append(text)
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    rows.insert(1, "|:--|" + "--:|" * (len(lines[0]) - 1))
    return "\n".join(rows) + "\n"


_MARKDOWN = {"best": "**{}**", "second": "<ins>{}</ins>", "": "{}"}


def write_rank(rank: float | None) -> str:
    """Write an average rank.

    >>> write_rank(1.5), write_rank(None)
    ('1.5', '–')
    """
    return DASH if rank is None else f"{rank:.1f}"


def _harmless(text: str) -> str:
    return re.sub(r"([\\|<*`])", r"\\\1", " ".join(text.split()))


def terminal_table(records: Iterable[RunRecord], metric: str = HEADLINE) -> "Table":
    """Return the table of one metric for a rich console."""
    return terminal(metric_table(lay_out(records), metric))


def terminal(table: MetricTable) -> "Table":
    """Return a table for a rich console."""
    from rich.table import Table
    from rich.text import Text

    marked = any(one.best for one in table.standings)
    caption = "\n".join([f"{table.remark}.", *([BRIEFLY] if marked else table.reasons)])
    shown = Table(title=Text(table.title), caption=Text(caption))
    shown.add_column("method", no_wrap=True)
    for column in table.columns:
        shown.add_column(Text("\n".join(column.parts)), justify="right", no_wrap=True)
    if table.ranks:
        shown.add_column("rank", justify="right")
    for row, (label, cells) in enumerate(table.rows):
        written = [
            Text(write(cell), style=_TERMINAL[table.mark(row, column)])
            for column, cell in enumerate(cells)
        ]
        place = [Text(write_rank(table.ranks[row]))] if table.ranks else []
        shown.add_row(Text(label.text), *written, *place)
    return shown


_TERMINAL = {"best": "bold", "second": "underline", "": ""}
