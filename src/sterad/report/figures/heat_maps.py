"""Heat maps of single runs: the accuracy matrix, and the confusion matrix in task order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.section import Run, Section, run_figures
from sterad.report.style import WIDTH, make_figure, shorten, tick_labels, use_theme
from sterad.report.tables import percent
from sterad.results.record import Moment, RunRecord, StreamFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Cells = NDArray[np.float64]
_MAX_NUMBERED_COLUMNS = 14  # more columns leave no room for a number in every cell
_MAX_TASK_LINES = 25


def matrix_section(runs: Sequence[Run], notes: tuple[str, ...]) -> Section:
    """Return the section of accuracy matrices, one figure per run."""
    return Section(
        "matrix",
        "Accuracy matrices",
        "Accuracy in percent on the test images of each task (columns) at each evaluation (rows). "
        "A column shows how a task is learned and then remembered or forgotten; a cell is blank "
        "before any of its classes has been seen.",
        run_figures(
            [run for run in runs if run.record.accuracy_matrix],
            draw_accuracy_matrix,
            lambda record: f"Final average accuracy {percent(record.final_average_accuracy)} %.",
        ),
        notes,
    )


def row_moments(record: RunRecord) -> tuple[Moment, ...]:
    """Return the moments of the rows: announced ends of tasks, or all if none is announced.

    Empty if the number of moments is not the number of rows.
    """
    ends = tuple(moment for moment in record.moments if moment.boundary)
    moments = ends if record.stream.announced else record.moments
    return moments if len(moments) == len(record.accuracy_matrix) else ()


@use_theme()
def draw_accuracy_matrix(record: RunRecord) -> "Figure":
    """Draw the accuracy matrix of one run in percent."""
    cells = 100 * np.array(record.accuracy_matrix, float)  # None becomes NaN
    rows, columns = cells.shape
    highest = max(10.0, 10 * np.ceil(cells[~np.isnan(cells)].max(initial=0.0) / 10))
    moments = row_moments(record)
    names = [f"{moment.samples:,}" for moment in moments] or [str(row + 1) for row in range(rows)]
    figure, axes = make_figure(height=0.74 + max(1.2, min(4.2, 0.27 * rows)))
    axes.set_yticks(np.arange(rows), names)
    axes.set_xticks(np.arange(columns), tick_labels(record.evaluations))
    axes.set_xlabel("task, in stream order" if columns > 1 else "evaluation")
    axes.set_ylabel("images learned" if moments else "moment")
    _draw_cells(axes, cells, highest, "accuracy (%)")
    return figure


def confusion_section(runs: Sequence[Run], notes: tuple[str, ...]) -> Section:
    """Return the section of confusion matrices, one figure per run."""
    known = [run for run in runs if run.record.confusion]
    return Section(
        "confusion",
        "Confusion in task order",
        "Predictions at the end of the stream in percent of each class: true classes in rows, "
        "predicted classes in columns, both in the order of the tasks, with white lines between "
        "tasks. The diagonal is correct; errors on the right are classes that were learned last.",
        run_figures(known, draw_confusion, _describe_confusion),
        notes if known else ("No record has a confusion matrix.",),
    )


def _describe_confusion(record: RunRecord) -> str:
    fraction = last_task_errors(record)
    if fraction is None:
        return "There are no errors on earlier tasks."
    return f"{percent(fraction)} % of the errors on earlier tasks are classes of the last task."


def task_order(stream: StreamFacts) -> tuple[list[int], list[int]]:
    """Return all classes in the order of the tasks, and the positions where a new task begins.

    A class of several tasks is listed with the first; classes of no task come last.
    """
    order: list[int] = []
    starts: list[int] = []
    for task in (*stream.tasks, tuple(range(len(stream.class_names)))):
        new = [c for c in task if c not in order]
        if new and order:
            starts.append(len(order))
        order += new
    return order, starts


def confusion_percentages(record: RunRecord) -> Cells:
    """Return predictions in percent of each class, in task order; NaN without test images."""
    order, _ = task_order(record.stream)
    counts = np.array(record.confusion, float)[np.ix_(order, order)]
    totals = counts.sum(axis=1, keepdims=True)
    return 100 * counts / np.where(totals > 0, totals, np.nan)


def last_task_errors(record: RunRecord) -> float | None:
    """Return the fraction of errors on earlier tasks that are classes of the last task.

    It is high if a method forgets by predicting the classes that it learned last.
    """
    order, starts = task_order(record.stream)
    if not starts:
        return None
    counts = np.array(record.confusion, float)[np.ix_(order, order)][: starts[-1]]
    errors = counts.sum() - np.trace(counts[:, : starts[-1]])
    return float(counts[:, starts[-1] :].sum() / errors) if errors else None


@use_theme()
def draw_confusion(record: RunRecord) -> "Figure":
    """Draw the confusion matrix: true classes in rows, predicted classes in columns."""
    order, starts = task_order(record.stream)
    names = [record.stream.class_names[c] for c in order]
    positions = np.arange(len(names))
    figure, axes = make_figure(height=4.4)
    axes.set_xticks(positions, tick_labels([shorten(name, 10) for name in names]))
    axes.set_yticks(positions, [shorten(name, 7) for name in names])
    axes.set(xlabel="predicted class, in task order", ylabel="true class")
    cells = confusion_percentages(record)
    _draw_cells(axes, cells, 100.0, "share of the class (%)", write_zeros=False)
    for start in starts if len(starts) <= _MAX_TASK_LINES else ():
        for line in (axes.axhline, axes.axvline):
            line(start - 0.5, color="#ffffff", linewidth=1.2)
    return figure


def _draw_cells(
    axes: "Axes", cells: Cells, highest: float, label: str, write_zeros: bool = True
) -> None:
    """Draw cells (rows, columns), NaN blank: with numbers if they fit, else with a color bar."""
    rows, columns = cells.shape
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if columns > _MAX_NUMBERED_COLUMNS or rows > 2 * _MAX_NUMBERED_COLUMNS:
        _draw_image(axes, cells, highest, label)
        return
    x, y = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    known = np.ma.masked_invalid(cells)
    mesh = axes.pcolormesh(x, y, known, cmap="viridis", vmin=0.0, vmax=highest)
    axes.invert_yaxis()
    decimals = 1 if columns <= 8 else 0
    size = min(8.0, 72 * (WIDTH - 0.74) / columns / (2.4 + decimals))
    for (row, column), value in np.ndenumerate(cells):
        if not np.isnan(value) and (write_zeros or value > 0):
            red, green, blue, _ = mesh.cmap(value / highest)
            is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            color = "#ffffff" if is_dark else "#111111"
            text = f"{value:.{decimals}f}"
            axes.text(column, row, text, ha="center", va="center", size=size, color=color)


def _draw_image(axes: "Axes", cells: Cells, highest: float, label: str) -> None:
    rows, columns = cells.shape
    axes.set_xticks(axes.get_xticks()[:: 1 + columns // 12])
    axes.set_yticks(axes.get_yticks()[:: 1 + rows // 20])
    image = axes.imshow(
        cells, cmap="viridis", vmin=0.0, vmax=highest, aspect="auto", interpolation="nearest"
    )
    box = axes.get_position()
    axes.set_position((box.x0, box.y0, 0.84 * box.width, box.height))
    bar_axes = axes.figure.add_axes((box.x0 + 0.87 * box.width, box.y0, 0.02, box.height))
    axes.figure.colorbar(image, cax=bar_axes, label=label)
    bar_axes.tick_params(length=0)
