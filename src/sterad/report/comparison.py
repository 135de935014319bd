"""Two runs side by side: what differs in their settings, metrics and curves; as one HTML page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sterad.errors import SteradError
from sterad.report.figures.along_stream import draw_accuracy
from sterad.report.figures.forgetting import draw_forgetting, forgetting_ranges
from sterad.report.figures.heat_maps import draw_accuracy_matrix
from sterad.report.html import draw_figures, render_page
from sterad.report.section import Methods, ReportFigure, Section
from sterad.report.tables import DASH, METRIC_MEANINGS, metric_title, percent
from sterad.report.text import format_duration, format_quantity
from sterad.results.grouping import flatten, format_value
from sterad.results.record import METRICS, RunRecord
from sterad.results.stored_run import StoredRun

Pair = tuple[RunRecord | None, RunRecord | None]
LETTERS = ("A", "B")
"""Names of the two runs in tables."""
_COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "time": ("seconds", format_duration),
    "images per batch": ("images_per_batch", "{:,.0f}".format),
    "images per second": ("images_per_second", "{:,.0f}".format),
    "pixels per batch": ("pixels_per_batch", format_quantity),
    "multiply-adds per batch": ("multiply_adds_per_batch", format_quantity),
    "state (MiB)": ("state_bytes", lambda size: f"{size / 2**20:,.1f}"),
    "peak memory (MiB)": ("peak_memory_bytes", lambda size: f"{size / 2**20:,.0f}"),
}
"""Fields of a record that are costs, and their texts."""


@dataclass(frozen=True)
class ValueRow:
    """A number of both runs, and the difference of the second from the first, as text."""

    name: str
    first: str
    second: str
    difference: str
    meaning: str = ""


@dataclass(frozen=True)
class Comparison:
    """What differs between two runs."""

    runs: tuple[StoredRun, StoredRun]
    settings: tuple[tuple[str, str, str], ...]
    """Path, first and second value of settings that differ; a dash where a run has none."""
    execution: tuple[tuple[str, str, str], ...]
    """The same of execution, code, data and machine, which are not part of the id."""
    metrics: tuple[ValueRow, ...]
    tasks: tuple[ValueRow, ...]
    """Final accuracy of each task; empty if the runs have different tasks."""
    cost: tuple[ValueRow, ...]


def compare_runs(first: StoredRun, second: StoredRun) -> Comparison:
    """Compare two runs; one that is not finished has no metrics."""
    for run in (first, second):
        if run.state == "damaged":
            raise SteradError(run.problem)
    records = first.record, second.record
    return Comparison(
        (first, second),
        find_differences(first.settings, second.settings),
        find_differences(*map(_conditions, records)),
        tuple(
            _percent_row(metric_title(metric), *_values(records, metric), METRIC_MEANINGS[metric])
            for metric in METRICS
            if _values(records, metric) != (None, None)
        ),
        _compare_tasks(*records),
        _compare_cost(records),
    )


def find_differences(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> tuple[tuple[str, str, str], ...]:
    """Return path, first and second value of what differs, in the order of the first.

    >>> find_differences({"lr": 0.1, "seed": 0}, {"lr": 0.1, "seed": 1, "views": 2})
    (('seed', '0', '1'), ('views', '–', '2'))
    """
    paths = dict.fromkeys([*first, *second])
    return tuple(
        (path, _text_of(first, path), _text_of(second, path))
        for path in paths
        if path not in first or path not in second or first[path] != second[path]
    )


def _text_of(values: Mapping[str, Any], path: str) -> str:
    return format_value(values[path]) if path in values else DASH


def _conditions(record: RunRecord | None) -> dict[str, Any]:
    """Return what a result depends on beside its settings."""
    if record is None:
        return {}
    origin = {name: value for name, value in record.provenance.items() if name != "changed"}
    digests = {"data digest": record.data_digest, "order digest": record.stream.digest}
    return flatten(record.execution) | flatten(origin) | digests


def _values(records: Pair, field: str) -> tuple[Any, Any]:
    first, second = (None if record is None else getattr(record, field) for record in records)
    return first, second


def _percent_row(
    name: str, first: float | None, second: float | None, meaning: str = ""
) -> ValueRow:
    difference = DASH
    if first is not None and second is not None:
        text = percent(second - first)
        difference = text if text.startswith("-") or text == "0.00" else f"+{text}"
    return ValueRow(name, percent(first), percent(second), difference, meaning)


def _compare_tasks(first: RunRecord | None, second: RunRecord | None) -> tuple[ValueRow, ...]:
    if first is None or second is None or first.stream.tasks != second.stream.tasks:
        return ()
    if first.evaluations != second.evaluations:
        return ()
    cells = zip(first.moments[-1].cells, second.moments[-1].cells, strict=True)
    return tuple(
        _percent_row(name, *pair) for name, pair in zip(first.evaluations, cells, strict=True)
    )


def _compare_cost(records: Pair) -> tuple[ValueRow, ...]:
    rows = []
    for name, (field, to_text) in _COSTS.items():
        first, second = _values(records, field)
        if first and second:  # older records have no images per batch
            ratio = f"× {second / first:.2f}"
            rows.append(ValueRow(name, to_text(first), to_text(second), ratio))
    return tuple(rows)


def render_comparison(comparison: Comparison) -> str:
    """Return a page that compares two finished runs."""
    for run in comparison.runs:
        if run.record is None:
            raise SteradError(
                f"the run {run.id} is {run.state}: the page compares finished runs; "
                f"`sterad show {run.path}` prints the command that continues it"
            )
    sections = _sections(comparison)
    return render_page(
        "compare.html",
        subject=" and ".join(describe_runs(comparison)),
        comparison=comparison,
        letters=LETTERS,
        names=describe_runs(comparison),
        sections=[(section, draw_figures(section)) for section in sections if section.figures],
    )


def describe_runs(comparison: Comparison) -> tuple[str, str]:
    """Return short names of both runs: method, and stream, dataset and seed if they differ."""
    differing = {path for path, _, _ in comparison.settings}
    paths = [p for p in ("dataset.name", "stream.name", "seed") if p in differing]
    first, second = (
        ", ".join(
            [run.value("method.name")]
            + [f"seed {run.value(path)}" if path == "seed" else run.value(path) for path in paths]
        )
        for run in comparison.runs
    )
    return f"A {first}", f"B {second}"


def _sections(comparison: Comparison) -> tuple[Section, ...]:
    records = [run.record for run in comparison.runs if run.record is not None]
    names = describe_runs(comparison)
    methods: Methods = [(name, [record]) for name, record in zip(names, records, strict=True)]
    caption = "Best earlier accuracy of a task minus its final accuracy; lower is better."
    forgetting = ReportFigure(partial(draw_forgetting, methods), "Forgetting", caption)
    has_forgetting = any(forgetting_ranges(found) for _, found in methods)
    caption = "On the test images of all classes seen so far."
    accuracy = ReportFigure(partial(draw_accuracy, methods), "Accuracy over time", caption)
    return (
        Section(
            "time",
            "Curves",
            "Both runs along the stream and by task. Dotted vertical lines are announced ends of "
            "tasks, if both runs have the same.",
            (accuracy, forgetting) if has_forgetting else (accuracy,),
        ),
        Section(
            "matrix",
            "Accuracy matrices",
            "Accuracy in percent on the test images of each task (columns) at each evaluation "
            "(rows).",
            tuple(
                ReportFigure(partial(draw_accuracy_matrix, record), name, "")
                for name, record in zip(names, records, strict=True)
                if record.accuracy_matrix
            ),
        ),
    )
