"""Percentages as a heat map: a number in every cell where there is room, else a picture."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cells = NDArray[np.float64]
_NUMBERED = 14  # columns that still leave room for a number in every cell


def draw_cells(
    axes: "Axes", cells: Cells, top: float, scale: str, write_zeros: bool = True
) -> None:
    """Draw cells (rows, columns), the first row on top, NaN blank; `scale` names what is shown."""
    rows, columns = cells.shape
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if columns <= _NUMBERED and rows <= 2 * _NUMBERED:
        _draw_numbers(axes, cells, top, write_zeros)
    else:
        _draw_picture(axes, cells, top, scale)


def _draw_numbers(axes: "Axes", cells: Cells, top: float, write_zeros: bool) -> None:
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
        if not np.isnan(value) and (write_zeros or value > 0):
            ink = _legible_on(value / top)
            written = f"{value:.{decimals}f}"
            axes.text(column, row, written, ha="center", va="center", size=size, color=ink)


def _legible_on(shade: float) -> str:
    import matplotlib

    red, green, blue, _ = matplotlib.colormaps["viridis"](shade)
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "#111111"


def _draw_picture(axes: "Axes", cells: Cells, top: float, scale: str) -> None:
    """Draw a matrix that is too large for numbers, with a scale beside it."""
    rows, columns = cells.shape
    axes.set_xticks(axes.get_xticks()[:: 1 + columns // 12])
    axes.set_yticks(axes.get_yticks()[:: 1 + rows // 20])
    image = axes.imshow(
        cells, cmap="viridis", vmin=0.0, vmax=top, aspect="auto", interpolation="nearest"
    )
    box = axes.get_position()
    axes.set_position((box.x0, box.y0, 0.84 * box.width, box.height))
    beside = axes.figure.add_axes((box.x0 + 0.87 * box.width, box.y0, 0.02, box.height))
    axes.figure.colorbar(image, cax=beside, label=scale)
    beside.tick_params(length=0)
