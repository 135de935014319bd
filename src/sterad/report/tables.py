"""Tables of mean ± standard deviation over seeds, with marks for significant differences."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from sterad.results.grouping import Label, Layout, format_value
from sterad.results.record import RunRecord
from sterad.results.statistics import (
    RULE,
    Comparison,
    Ranking,
    Seeds,
    Summary,
    rank_methods,
    rank_values,
    summarize,
)

MAIN_METRIC = "final_average_accuracy"
DASH = "–"
NO_MARKS = "No marks"
UPPER_BOUND = "joint"
"""The method that trains on all data offline: it is in the tables but not compared."""
METRIC_MEANINGS = {
    MAIN_METRIC: "after the last image: mean over tasks, or over all test images if "
    "ends of tasks are not announced",
    "average_forgetting": "best earlier accuracy minus the final one; lower is better",
    "average_forgetting_released": "the same by the paper's released code, never negative",
    "backward_transfer": "final accuracy minus that of the first evaluation; higher is better",
    "anytime_accuracy": "mean of the accuracy on all seen classes along the stream",
    "test_then_train_accuracy": "on each stream image just before it is learned",
}
"""Metrics of a record, with their meaning."""
_IN_TABLES = (MAIN_METRIC, "average_forgetting", "anytime_accuracy")
TABLE_METRICS = {metric: METRIC_MEANINGS[metric] for metric in _IN_TABLES}
"""Metrics of the tables of a report, with their meaning."""
Rows = tuple[tuple[Label, tuple[Summary | None, ...]], ...]
Text = TypeVar("Text")


@dataclass(frozen=True)
class MetricTable:
    """One metric of every group of runs."""

    metric: str
    columns: tuple[Label, ...]
    rows: Rows
    """Methods and their cells; None if there are no runs or they do not have the metric."""
    rankings: tuple[Ranking, ...]
    """Best and second-best methods of each column."""
    ranks: tuple[float | None, ...]
    """Mean rank of each row over the columns, among methods with runs in all columns; empty with
    fewer than two columns or two such methods."""
    precisions: tuple[str, ...]
    """Precisions of the runs."""
    changed: int
    """Number of runs that were continued although something that they depend on had changed."""

    def mark(self, row: int, column: int) -> str:
        """Return "best", "second" or an empty string."""
        ranking = self.rankings[column]
        return "best" if row in ranking.best else "second" if row in ranking.second else ""

    def format_rows(
        self, format_text: Callable[[str], Text], format_cell: Callable[[Summary | None, str], Text]
    ) -> Iterator[list[Text]]:
        """Yield the name, the cells and, if there are ranks, the mean rank of each method.

        format_cell: receives a cell and its mark.
        """
        for row, (label, cells) in enumerate(self.rows):
            texts = [format_cell(cell, self.mark(row, column)) for column, cell in enumerate(cells)]
            rank = [format_text(format_rank(self.ranks[row]))] if self.ranks else []
            yield [format_text(label.text), *texts, *rank]

    def tests(self) -> list[tuple[int, Comparison]]:
        """Return every comparison with its column."""
        return [(c, test) for c, ranks in enumerate(self.rankings) for test in ranks.comparisons]

    @property
    def title(self) -> str:
        """The name of the metric."""
        return f"{metric_title(self.metric)} (%)"

    @property
    def remark(self) -> str:
        """The meaning of the metric."""
        return TABLE_METRICS[self.metric]

    @property
    def is_empty(self) -> bool:
        """Whether no run has the metric."""
        return all(cell is None for _, cells in self.rows for cell in cells)

    @property
    def footnotes(self) -> tuple[str, ...]:
        """The meaning of marks and ranks, and why columns without marks have none."""
        notes = [RULE + "."] if any(ranking.comparisons for ranking in self.rankings) else []
        notes += self.unmarked_notes
        if any(_is_upper_bound(label) for label, _ in self.rows):
            notes.append(f"{UPPER_BOUND} is an upper bound and is not compared.")
        if self.ranks:
            notes.append("Rank: mean over the columns, among methods with runs in all of them.")
        if len(self.precisions) > 1:
            names = " and ".join(self.precisions)
            notes.append(f"Runs have different precisions, {names}: --precision sets one for all.")
        if self.changed:
            notes.append(
                f"{self.changed} of the runs continued after accepted changes of data, code or "
                "machine: see `changes` in their records."
            )
        return tuple(notes)

    @property
    def unmarked_notes(self) -> tuple[str, ...]:
        """Why columns without marks have none."""
        columns: dict[str, list[str]] = {}
        for column, ranking in zip(self.columns, self.rankings, strict=True):
            if ranking.unmarked:
                columns.setdefault(ranking.unmarked, []).append(column.text)
        return tuple(
            f"{NO_MARKS}{_join_columns(names, len(self.columns))}: {reason}."
            for reason, names in columns.items()
        )


def collect_footnotes(tables: Sequence[MetricTable]) -> tuple[str, ...]:
    """Return the footnotes of tables, each once.

    A reason for missing marks names its tables, unless all have the same.
    """
    titles: dict[str, list[str]] = {}
    for table in tables:
        for note in table.footnotes:
            titles.setdefault(note, []).append(metric_title(table.metric))
    return tuple(
        note
        if len(names) == len(tables) or not note.startswith(NO_MARKS)
        else f"{', '.join(names)}: {note[0].lower()}{note[1:]}"
        for note, names in titles.items()
    )


def common_seeds(tables: Iterable[MetricTable]) -> int | None:
    """Return the number of seeds of every cell, or None if cells differ in it."""
    counts = {c.n for table in tables for _, cells in table.rows for c in cells if c is not None}
    return counts.pop() if len(counts) == 1 else None


def _join_columns(names: list[str], total: int) -> str:
    if len(names) == total:
        return ""
    return f" in {'; '.join(names)}" if len(names) <= 3 else f" in {len(names)} columns"


def _is_upper_bound(label: Label) -> bool:
    return label.parts[0] == UPPER_BOUND


def metric_title(metric: str) -> str:
    """Return the name of a metric as a title.

    >>> metric_title("anytime_accuracy")
    'Anytime accuracy'
    """
    return metric.replace("_", " ").capitalize()


def build_table(layout: Layout, metric: str = MAIN_METRIC) -> MetricTable:
    """Summarize one metric over the seeds of every cell."""
    columns, higher_is_better = range(len(layout.columns)), "forgetting" not in metric
    rows = tuple(
        (label, tuple(_summarize(layout.cell(row, column), metric) for column in columns))
        for row, label in enumerate(layout.rows)
    )
    rankings = tuple(
        rank_methods(
            [_values_by_seed(layout, row, column, metric) for row in range(len(rows))],
            higher_is_better,
        )
        for column in columns
    )
    records = [record for cell in layout.cells.values() for record in cell]
    precisions = {str(record.execution.get("precision", "float32")) for record in records}
    return MetricTable(
        metric=metric,
        columns=layout.columns,
        rows=rows,
        rankings=rankings,
        ranks=_mean_ranks(rows, higher_is_better),
        precisions=tuple(sorted(precisions)),
        changed=sum(bool(record.changes) for record in records),
    )


def _summarize(records: Iterable[RunRecord], metric: str) -> Summary | None:
    values = [value for record in records if (value := getattr(record, metric)) is not None]
    return summarize(values) if values else None


def _values_by_seed(layout: Layout, row: int, column: int, metric: str) -> Seeds:
    if _is_upper_bound(layout.rows[row]):
        return {}
    records = layout.cell(row, column)
    values = {format_value(r.config.get("seed")): getattr(r, metric) for r in records}
    return {seed: value for seed, value in values.items() if value is not None}


def _mean_ranks(rows: Rows, higher_is_better: bool) -> tuple[float | None, ...]:
    sign = 1 if higher_is_better else -1
    means = {
        row: [sign * cell.mean for cell in cells if cell is not None]
        for row, (label, cells) in enumerate(rows)
        if None not in cells and not _is_upper_bound(label)
    }
    by_column = [rank_values(column) for column in zip(*means.values(), strict=True)]
    if len(means) < 2 or len(by_column) < 2:
        return ()
    by_row = dict(zip(means, zip(*by_column, strict=True), strict=True))
    return tuple(fmean(by_row[row]) if row in by_row else None for row in range(len(rows)))


def percent(fraction: float | None) -> str:
    """Return a fraction in percent with two decimals.

    >>> percent(0.92314), percent(-0.00001), percent(None)
    ('92.31', '0.00', '–')
    """
    if fraction is None:
        return DASH
    return f"{round(100 * fraction, 2) + 0.0:.2f}"  # + 0.0 turns -0.0 into 0.0


def format_summary(summary: Summary | None) -> str:
    """Return mean ± standard deviation in percent and the number of seeds.

    >>> format_summary(Summary(0.9231, 0.0042, 3)), format_summary(Summary(0.5, None, 1))
    ('92.31 ± 0.42 (n=3)', '50.00 (n=1)')
    """
    if summary is None:
        return DASH
    spread = "" if summary.std is None else f" ± {percent(summary.std)}"
    return f"{percent(summary.mean)}{spread} (n={summary.n})"


def format_rank(rank: float | None) -> str:
    """Return a mean rank as text.

    >>> format_rank(1.5), format_rank(None)
    ('1.5', '–')
    """
    return DASH if rank is None else f"{rank:.1f}"
