"""Which classes are taken for which at the end, classes in the order in which their tasks came."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.figures.heat_map import draw_cells
from sterad.report.style import one_panel, themed
from sterad.report.wording import shorten, tick_names
from sterad.results.record import RunRecord, StreamFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def task_order(stream: StreamFacts) -> tuple[list[int], list[int]]:
    """Return all classes in the order of the stream's tasks, and where a new task begins.

    A class of several tasks stands with the first; one of none stands at the end.
    """
    order: list[int] = []
    starts: list[int] = []
    for task in (*stream.tasks, tuple(range(len(stream.class_names)))):
        new = [c for c in task if c not in order]
        if new and order:
            starts.append(len(order))
        order += new
    return order, starts


def shares(record: RunRecord) -> NDArray[np.float64]:
    """Return answers to each class in per cent, in task order; a class without images is NaN."""
    order, _ = task_order(record.stream)
    counts = np.array(record.confusion, float)[np.ix_(order, order)]
    asked = counts.sum(axis=1, keepdims=True)
    return 100 * counts / np.where(asked > 0, asked, np.nan)


def late_answers(record: RunRecord) -> float | None:
    """Return the share of answers from the last task among errors on earlier ones.

    It is high where a method forgets by taking everything for what it learned last.
    """
    order, starts = task_order(record.stream)
    if not starts:
        return None
    counts = np.array(record.confusion, float)[np.ix_(order, order)][: starts[-1]]
    wrong = counts.sum() - np.trace(counts[:, : starts[-1]])
    return float(counts[:, starts[-1] :].sum() / wrong) if wrong else None


def draw(record: RunRecord) -> "Figure":
    """Draw the matrix of a record that has one: true classes down, answers across."""
    order, starts = task_order(record.stream)
    cells = shares(record)
    with themed():
        figure, axes = one_panel(height=4.4)
        _name_classes(axes, [record.stream.class_names[c] for c in order])
        draw_cells(axes, cells, 100.0, "share of the class (%)", write_zeros=False)
        for start in starts if len(starts) <= 25 else ():
            for line in (axes.axhline, axes.axvline):
                line(start - 0.5, color="#ffffff", linewidth=1.2)
        return figure


def _name_classes(axes: "Axes", names: list[str]) -> None:
    places = np.arange(len(names))
    axes.set_xticks(places, tick_names([shorten(name, 10) for name in names]))
    axes.set_yticks(places, [shorten(name, 7) for name in names])
    axes.set_xlabel("answer, in the order of the tasks")
    axes.set_ylabel("class")
