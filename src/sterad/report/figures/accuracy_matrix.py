"""The accuracy matrix as a heat map: moments down, tasks across, a number in every cell."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.style import WIDTH, one_panel, themed
from sterad.report.wording import tick_names
from sterad.results.record import Moment, RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Cells = NDArray[np.float64]
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
    top = max(10.0, 10 * np.ceil(cells[~np.isnan(cells)].max(initial=0.0) / 10))
    with themed():
        figure, axes = one_panel(height=0.74 + max(1.2, min(4.2, 0.27 * rows)))
        _name_rows(axes, record)
        axes.set_xticks(np.arange(columns), tick_names(record.evaluations))
        axes.set_xlabel("task, in the order of the stream" if columns > 1 else "evaluation")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if columns <= _NUMBERED and rows <= 2 * _NUMBERED:
            _draw_cells(axes, cells, top)
        else:
            _draw_picture(axes, cells, top)
        return figure


def _name_rows(axes: "Axes", record: RunRecord) -> None:
    rows = len(record.accuracy_matrix)
    moments = row_moments(record)
    names = [f"{moment.samples:,}" for moment in moments] or [str(row + 1) for row in range(rows)]
    axes.set_yticks(np.arange(rows), names)
    axes.set_ylabel("images learnt" if moments else "moment")


def _draw_cells(axes: "Axes", cells: Cells, top: float) -> None:
    rows, columns = cells.shape
    axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(cells),
        cmap="viridis",
        vmin=0.0,
        vmax=top,
    )
    axes.invert_yaxis()
    decimals = 1 if columns <= 8 else 0
    size = min(8.0, 72 * (WIDTH - 0.74) / columns / (2.4 + decimals))
    for (row, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            ink = _legible_on(value / top)
            written = f"{value:.{decimals}f}"
            axes.text(column, row, written, ha="center", va="center", size=size, color=ink)


def _legible_on(shade: float) -> str:
    import matplotlib

    red, green, blue, _ = matplotlib.colormaps["viridis"](shade)
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "#111111"


def _draw_picture(axes: "Axes", cells: Cells, top: float) -> None:
    """Draw a matrix that is too large for numbers, with a scale beside it."""
    rows, columns = cells.shape
    axes.set_xticks(axes.get_xticks()[:: 1 + columns // 12])
    axes.set_yticks(axes.get_yticks()[:: 1 + rows // 20])
    image = axes.imshow(
        cells, cmap="viridis", vmin=0.0, vmax=top, aspect="auto", interpolation="nearest"
    )
    box = axes.get_position()
    axes.set_position((box.x0, box.y0, 0.84 * box.width, box.height))
    scale = axes.figure.add_axes((box.x0 + 0.87 * box.width, box.y0, 0.02, box.height))
    axes.figure.colorbar(image, cax=scale, label="accuracy (%)")
    scale.tick_params(length=0)
