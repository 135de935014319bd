"""Runs and cells as CSV: one row a run, and one row a cell of every table; plain fractions."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sterad.report.tables import MetricTable
from sterad.results.grouping import Layout, flatten
from sterad.results.record import METRICS, RunRecord

COSTS = (
    "seconds",
    "images_per_second",
    "images_per_step",
    "consolidation_images",
    "peak_memory_bytes",
)
Row = Mapping[str, Any]


def runs_csv(records: Sequence[RunRecord]) -> str:
    """Return one row a run: id, every metric and cost, every setting, execution, provenance."""
    return _written([_run(record) for record in records])


def _run(record: RunRecord) -> Row:
    row: dict[str, Any] = {"id": record.id}
    row |= {name: getattr(record, name) for name in (*METRICS, *COSTS)}
    row |= {"samples": record.stream.samples, "steps": record.stream.steps}
    row |= flatten(record.config)
    row |= {f"execution.{name}": value for name, value in flatten(record.execution).items()}
    return row | {f"provenance.{name}": value for name, value in flatten(record.provenance).items()}


def cells_csv(layout: Layout, tables: Iterable[MetricTable]) -> str:
    """Return one row a cell: mean, deviation, 95 % interval, mark, and the test behind it."""
    return _written([row for table in tables for row in _cells(layout, table)])


def _cells(layout: Layout, table: MetricTable) -> Iterable[Row]:
    for row, (label, cells) in enumerate(table.rows):
        for column, summary in enumerate(cells):
            if summary is None:
                continue
            margin = summary.margin
            yield {
                "metric": table.metric,
                "method": label.text,
                "setting": layout.columns[column].text,
                "n": summary.n,
                "mean": summary.mean,
                "std": summary.std,
                "low": None if margin is None else summary.mean - margin,
                "high": None if margin is None else summary.mean + margin,
                "mark": table.mark(row, column),
                **_test(table, row, column),
                "rank": table.ranks[row] if table.ranks else None,
            }


def _test(table: MetricTable, row: int, column: int) -> Row:
    """Return the comparison with the best mean; its difference is by how much that is better."""
    compared = [one for one in table.standings[column].comparisons if one.row == row]
    first = compared[0] if compared else None
    return {
        "compared_with": first and table.rows[first.against][0].text,
        "common_seeds": first and first.difference.n,
        "difference": first and first.difference.mean,
        "p": first and first.p,
        "p_corrected": first and first.corrected,
    }


def _written(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    logger = io.StringIO(newline="")
    writer = csv.DictWriter(logger, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return logger.getvalue()


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value
