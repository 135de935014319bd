"""The accuracy matrix as a heat map: moments down, tasks across, a number in every cell."""

from typing import TYPE_CHECKING

import numpy as np

from sterad.report.style import WIDTH, one_panel, themed, tick_names
from sterad.results.record import Moment, RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

_NUMBERED = 14  # columns that still leave room for a number in every cell


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
    with themed():
        figure, axes = one_panel(height=0.74 + max(1.2, min(5.0, 0.27 * rows)))
        top = max(10.0, 10 * np.ceil(cells[~np.isnan(cells)].max(initial=0.0) / 10))
        mesh = axes.pcolormesh(
            np.ma.masked_invalid(cells), cmap="viridis", vmin=0.0, vmax=top, linewidth=0
        )
        axes.invert_yaxis()
        _name_rows(axes, record)
        axes.set_xticks(np.arange(columns) + 0.5, tick_names(record.evaluations))
        axes.set_xlabel("task, in the order of the stream" if columns > 1 else "evaluation")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if columns <= _NUMBERED and rows <= 2 * _NUMBERED:
            _write_numbers(axes, cells, mesh)
        else:
            _thin_ticks(axes, rows, columns)
            figure.colorbar(mesh, ax=axes, label="accuracy (%)", fraction=0.05, pad=0.02)
        return figure


def _name_rows(axes: "Axes", record: RunRecord) -> None:
    rows = len(record.accuracy_matrix)
    moments = row_moments(record)
    names = [f"{moment.samples:,}" for moment in moments] or [str(row + 1) for row in range(rows)]
    axes.set_yticks(np.arange(rows) + 0.5, names)
    axes.set_ylabel("images learnt" if moments else "moment")


def _thin_ticks(axes: "Axes", rows: int, columns: int) -> None:
    axes.set_xticks(axes.get_xticks()[:: 1 + columns // 12])
    axes.set_yticks(axes.get_yticks()[:: 1 + rows // 20])


def _write_numbers(axes: "Axes", cells: np.ndarray, mesh: "QuadMesh") -> None:
    decimals = 1 if cells.shape[1] <= 8 else 0
    size = min(8.0, 72 * (WIDTH - 0.74) / cells.shape[1] / (2.4 + decimals))
    for (row, column), value in np.ndenumerate(cells):
        if np.isnan(value):
            continue
        red, green, blue, _ = mesh.cmap(mesh.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{value:.{decimals}f}",
            ha="center",
            va="center",
            size=size,
            color="#ffffff" if dark else "#111111",
        )
