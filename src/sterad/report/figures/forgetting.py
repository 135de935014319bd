"""Forgetting per task: the best earlier accuracy of a task minus its final accuracy."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sterad.report.section import Methods, ReportFigure, Section, join_ranked, methods_of
from sterad.report.style import INK, add_legend, line_style, make_figure, tick_labels, use_theme
from sterad.results.grouping import Layout
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_BARS = 120
_MAX_TICKS = 15
Range = tuple[float, float, float]
"""Lowest, mean and highest value over seeds."""
Matrix = Sequence[Sequence[float | None]]


def forgetting_section(layout: Layout) -> Section:
    """Return the section of forgetting, one figure per setting."""
    figures = []
    notes = []
    for column, label in enumerate(layout.columns):
        methods = methods_of(layout, column)
        by_method = {name: forgetting_ranges(records) for name, records in methods}
        means = {
            name: summarize(mean / 100 for _, mean, _ in ranges.values()).mean
            for name, ranges in by_method.items()
            if ranges
        }
        if means:
            caption = f"Mean over tasks: {join_ranked(means, 'points')}."
            figures.append(ReportFigure(partial(draw_forgetting, methods), label.text, caption))
        else:
            notes.append(f"{label.text}: no task was evaluated twice.")
    return Section(
        "forgetting",
        "Forgetting",
        "Best earlier accuracy of a task minus its final accuracy. Lower is better; negative "
        "values mean that later tasks improved it. Bars are means over seeds, whiskers range from "
        "the lowest to the highest seed.",
        tuple(figures),
        tuple(notes),
    )


def forgetting_per_task(matrix: Matrix) -> tuple[float | None, ...]:
    """Return max over earlier rows minus the last row, per column; None without an earlier row.

    >>> forgetting_per_task([[0.75, None], [0.5, 0.8]])
    (0.25, None)
    """
    if not matrix:
        return ()
    *earlier, last = matrix
    forgetting: list[float | None] = []
    for column, final in enumerate(last):
        known = [cell for row in earlier if (cell := row[column]) is not None]
        forgetting.append(max(known) - final if known and final is not None else None)
    return tuple(forgetting)


def forgetting_ranges(records: Sequence[RunRecord]) -> dict[int, Range]:
    """Return the range of forgetting over seeds in percentage points, by position of the task."""
    by_seed = [forgetting_per_task(record.accuracy_matrix) for record in records]
    ranges: dict[int, Range] = {}
    for task in range(max(map(len, by_seed), default=0)):
        cells = [row[task] for row in by_seed if task < len(row)]
        values = [100 * value for value in cells if value is not None]
        if values:
            ranges[task] = (min(values), summarize(values).mean, max(values))
    return ranges


def draw_forgetting(methods: Methods) -> "Figure":
    """Draw a bar per task and method with whiskers, or a line per method if there are too many."""
    ranges = [forgetting_ranges(records) for _, records in methods]
    present = [index for index, (_, records) in enumerate(methods) if records]
    tasks = sorted({task for by_task in ranges for task in by_task})
    uses_lines = len(tasks) * len(present) > _MAX_BARS
    with use_theme():
        figure, axes = make_figure()
        for position, index in enumerate(present):
            if uses_lines:
                _draw_line(axes, index, methods[index][0], ranges[index])
            else:
                offset = 0.8 * ((position + 0.5) / len(present) - 0.5)
                width = 0.8 / len(present)
                _draw_bars(axes, index, methods[index][0], ranges[index], offset, width)
        axes.axhline(0, color=INK, linewidth=0.7)
        _name_tasks(axes, tasks, next((r.evaluations for _, rs in methods for r in rs), ()))
        axes.set_ylabel("forgetting (percentage points)")
        axes.grid(axis="y")
        add_legend(axes)
        return figure


def _draw_bars(
    axes: "Axes", index: int, name: str, ranges: dict[int, Range], offset: float, width: float
) -> None:
    x = np.array(list(ranges), float) + offset
    low, mean, high = np.array(list(ranges.values()), float).reshape(-1, 3).T
    axes.bar(x, mean, 0.92 * width, color=line_style(index).color, label=name)
    if (high > low).any():
        axes.errorbar(x, mean, [mean - low, high - mean], fmt="none", ecolor=INK, elinewidth=0.8)


def _draw_line(axes: "Axes", index: int, name: str, ranges: dict[int, Range]) -> None:
    style = line_style(index)
    means = [mean for _, mean, _ in ranges.values()]
    axes.plot(list(ranges), means, color=style.color, linestyle=style.dash, lw=1.4, label=name)


def _name_tasks(axes: "Axes", tasks: Sequence[int], evaluations: Sequence[str]) -> None:
    names = tick_labels(evaluations)
    spacing = 1 + len(tasks) // _MAX_TICKS
    axes.set_xticks(tasks[::spacing], [names[task] for task in tasks[::spacing]])
    axes.set_xlabel("task, in stream order")
