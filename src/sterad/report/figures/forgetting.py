"""Forgetting per task: the best accuracy that a task had before, minus the one it ends with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sterad.report.style import INK, legend_above, one_panel, strokes, themed
from sterad.report.wording import tick_names
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_BARS = 120
Spread = tuple[float, float, float]
Matrix = Sequence[Sequence[float | None]]


def forgotten(matrix: Matrix) -> tuple[float | None, ...]:
    """Return max over earlier rows minus the last row, per column; None without an earlier row.

    >>> forgotten([[0.75, None], [0.5, 0.8]])
    (0.25, None)
    """
    if not matrix:
        return ()
    *earlier, last = matrix
    lost: list[float | None] = []
    for column, final in enumerate(last):
        known = [cell for row in earlier if (cell := row[column]) is not None]
        lost.append(max(known) - final if known and final is not None else None)
    return tuple(lost)


def per_task(records: Sequence[RunRecord]) -> dict[int, Spread]:
    """Return lowest, mean and highest forgetting over seeds in per cent, by place of the task."""
    lost = [forgotten(record.accuracy_matrix) for record in records]
    found: dict[int, Spread] = {}
    for place in range(max(map(len, lost), default=0)):
        seeds = [row[place] for row in lost if place < len(row)]
        values = [100 * value for value in seeds if value is not None]
        if values:
            found[place] = (min(values), summarize(values).mean, max(values))
    return found


def draw(methods: Sequence[tuple[str, Sequence[RunRecord]]]) -> "Figure":
    """Draw a bar per task and method; whiskers go from the lowest to the highest seed."""
    spreads = [per_task(found) for _, found in methods]
    present = [index for index, (_, found) in enumerate(methods) if found]
    places = sorted({place for spread in spreads for place in spread})
    with themed():
        figure, axes = one_panel()
        many = len(places) * len(present) > _MOST_BARS
        for turn, index in enumerate(present):
            if many:
                _draw_line(axes, index, methods[index][0], spreads[index])
            else:
                offset = 0.8 * ((turn + 0.5) / len(present) - 0.5)
                width = 0.8 / len(present)
                _draw_bars(axes, index, methods[index][0], spreads[index], offset, width)
        axes.axhline(0, color=INK, linewidth=0.7)
        _name_tasks(axes, places, next((r.evaluations for _, f in methods for r in f), ()))
        axes.set_ylabel("forgetting (percentage points)")
        axes.grid(axis="y")
        legend_above(axes)
        return figure


def _draw_bars(
    axes: "Axes", index: int, name: str, spread: dict[int, Spread], offset: float, width: float
) -> None:
    places = np.array(list(spread), float) + offset
    low, mean, high = np.array(list(spread.values()), float).reshape(-1, 3).T
    axes.bar(places, mean, 0.92 * width, color=strokes(index).color, label=name)
    if (high > low).any():
        axes.errorbar(
            places, mean, [mean - low, high - mean], fmt="none", ecolor=INK, elinewidth=0.8
        )


def _draw_line(axes: "Axes", index: int, name: str, spread: dict[int, Spread]) -> None:
    look = strokes(index)
    mean = [middle for _, middle, _ in spread.values()]
    axes.plot(list(spread), mean, color=look.color, linestyle=look.dash, lw=1.4, label=name)


def _name_tasks(axes: "Axes", places: Sequence[int], evaluations: Sequence[str]) -> None:
    names = tick_names(evaluations)
    step = 1 + len(places) // 15
    axes.set_xticks(places[::step], [names[place] for place in places[::step]])
    axes.set_xlabel("task, in the order of the stream")
