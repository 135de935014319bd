"""The accuracy matrix as a heat map: moments down, tasks across, a number in every cell."""

from typing import TYPE_CHECKING

import numpy as np

from sterad.report.figures.heat_map import draw_cells
from sterad.report.style import one_panel, themed
from sterad.report.wording import tick_names
from sterad.results.record import Moment, RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def row_moments(record: RunRecord) -> tuple[Moment, ...]:
    """Return the moments of the rows: ends of tasks where they are announced, else all.

    Empty where the moments do not account for the rows.
    """
    ends = tuple(moment for moment in record.moments if moment.boundary)
    moments = ends if record.stream.announced else record.moments
    return moments if len(moments) == len(record.accuracy_matrix) else ()


def draw(record: RunRecord) -> "Figure":
    """Draw the matrix of one run, accuracies in per cent; no class of a blank cell was seen yet."""
    cells = np.array(
        [[np.nan if cell is None else 100 * cell for cell in row] for row in record.accuracy_matrix]
    )
    rows, columns = cells.shape
    top = max(10.0, 10 * np.ceil(cells[~np.isnan(cells)].max(initial=0.0) / 10))
    with themed():
        figure, axes = one_panel(height=0.74 + max(1.2, min(4.2, 0.27 * rows)))
        _name_rows(axes, record)
        axes.set_xticks(np.arange(columns), tick_names(record.evaluations))
        axes.set_xlabel("task, in the order of the stream" if columns > 1 else "evaluation")
        draw_cells(axes, cells, top, "accuracy (%)")
        return figure


def _name_rows(axes: "Axes", record: RunRecord) -> None:
    rows = len(record.accuracy_matrix)
    moments = row_moments(record)
    names = [f"{moment.samples:,}" for moment in moments] or [str(row + 1) for row in range(rows)]
    axes.set_yticks(np.arange(rows), names)
    axes.set_ylabel("images learned" if moments else "moment")
