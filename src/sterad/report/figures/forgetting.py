"""Forgetting per task: the best earlier accuracy of a task minus its final accuracy."""

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.section import Methods, ReportFigure, Section, join_ranked, methods_by_setting
from sterad.report.style import (
    INK,
    add_legend,
    line_color,
    line_style,
    make_figure,
    tick_labels,
    use_theme,
)
from sterad.results.grouping import Layout
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_BARS = 120
_MAX_TICKS = 15
Range = tuple[float, float, float]
"""Lowest, mean and highest value over seeds."""
Matrix = Sequence[Sequence[float | None]]


def forgetting_section(layout: Layout) -> Section:
    """Return the section of forgetting, one figure per setting."""
    figures, notes = [], []
    for setting, methods in methods_by_setting(layout):
        means = {
            name: fmean(mean / 100 for _, mean, _ in ranges.values())
            for name, records in methods
            if (ranges := forgetting_ranges(records))
        }
        if means:
            caption = f"Mean over tasks: {join_ranked(means, 'points')}."
            figures.append(ReportFigure(partial(draw_forgetting, methods), setting, caption))
        else:
            notes.append(f"{setting}: no task was evaluated twice.")
    return Section(
        "forgetting",
        "Forgetting",
        "Best earlier accuracy of a task minus its final accuracy. Lower is better; negative "
        "values mean that later tasks improved it. Bars are means over seeds, whiskers range from "
        "the lowest to the highest seed.",
        tuple(figures),
        tuple(notes),
    )


def forgetting_per_task(matrix: Matrix) -> NDArray[np.float64]:
    """Return max over earlier rows minus the last row, per column; NaN without an earlier row.

    >>> forgetting_per_task([[0.75, None], [0.5, 0.8]])
    array([0.25,  nan])
    """
    cells = np.array(matrix, float)  # None becomes NaN
    return np.asarray(np.fmax.reduce(cells[:-1], axis=0, initial=np.nan) - cells[-1])


def forgetting_ranges(records: Sequence[RunRecord]) -> dict[int, Range]:
    """Return the range of forgetting over seeds in percentage points, by position of the task."""
    matrices = [record.accuracy_matrix for record in records if record.accuracy_matrix]
    by_seed = [100 * forgetting_per_task(matrix) for matrix in matrices]
    ranges: dict[int, Range] = {}
    for task, cells in enumerate(zip_longest(*by_seed, fillvalue=np.nan)):
        values = [float(value) for value in cells if not np.isnan(value)]
        if values:
            ranges[task] = (min(values), fmean(values), max(values))
    return ranges


@use_theme()
def draw_forgetting(methods: Methods) -> "Figure":
    """Draw a bar per task and method with whiskers, or a line per method if there are too many."""
    ranges = {
        index: forgetting_ranges(records) for index, (_, records) in enumerate(methods) if records
    }
    tasks = sorted({task for by_task in ranges.values() for task in by_task})
    figure, axes = make_figure()
    for position, (index, by_task) in enumerate(ranges.items()):
        name, x = methods[index][0], np.array(list(by_task), float)
        low, mean, high = np.array(list(by_task.values()), float).reshape(-1, 3).T
        if len(tasks) * len(ranges) > _MAX_BARS:
            axes.plot(x, mean, **line_style(index, marker=""), lw=1.4, label=name)
            continue
        x += 0.8 * ((position + 0.5) / len(ranges) - 0.5)
        width = 0.92 * (0.8 / len(ranges))
        axes.bar(x, mean, width, color=line_color(index), label=name)
        if (high > low).any():
            whiskers = [mean - low, high - mean]
            axes.errorbar(x, mean, whiskers, fmt="none", ecolor=INK, elinewidth=0.8)
    axes.axhline(0, color=INK, linewidth=0.7)
    names = tick_labels(next(r.evaluations for _, records in methods for r in records))
    ticks = tasks[:: 1 + len(tasks) // _MAX_TICKS]
    axes.set_xticks(ticks, [names[task] for task in ticks])
    axes.set(xlabel="task, in stream order", ylabel="forgetting (percentage points)")
    axes.grid(axis="y")
    add_legend(axes)
    return figure
