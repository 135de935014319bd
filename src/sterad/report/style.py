"""How every figure looks: one ink that follows the page, colors for light and dark, no pyplot."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sterad.errors import SteradError
from sterad.report.wording import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#010203"
"""Stands for the color of the text around the figure; `svg.inline` replaces it."""
# Okabe and Ito's colors without black and yellow, orange and sky a little darker: each keeps a
# contrast of 2.5 with white and with the dark page, and any two stay apart for the color-blind.
PALETTE = ("#0072b2", "#ce5300", "#009e73", "#cc79a7", "#db9500", "#47a3e3")
WIDTH, HEIGHT = 4.8, 2.9
"""Inches; at this width text is legible at full size and on a phone."""
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Strokes:
    """How one method is drawn in every figure."""

    color: str
    marker: str
    dash: str


def strokes(index: int) -> Strokes:
    """Return the strokes of the method at `index`: colors first, then dashes tell them apart."""
    lap, place = divmod(index, len(PALETTE))
    return Strokes(PALETTE[place], _MARKERS[(place + lap) % 6], _DASHES[lap % len(_DASHES)])


def task_colors(count: int) -> list[str]:
    """Return a color per task: the palette for a few, a scale from early to late for many."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    import matplotlib
    from matplotlib.colors import to_hex

    scale = matplotlib.colormaps["viridis"]
    return [to_hex(scale(0.1 + 0.8 * index / (count - 1))) for index in range(count)]


@contextmanager
def themed() -> Iterator[None]:
    """Set the look of what is drawn inside; outside nothing has changed."""
    try:
        import matplotlib
    except ImportError as error:
        raise SteradError(
            "figures need matplotlib, which is not installed: pip install 'sterad[report]'"
        ) from error
    # The user's own matplotlibrc must not change the page: records alone decide its bytes.
    plain = {k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith("backend")}
    with matplotlib.rc_context({**plain, **_LOOK}), warnings.catch_warnings():
        # A class name may hold signs that matplotlib's own font lacks; the browser has them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


_LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sterad",
    "text.parse_math": False,
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def one_panel(height: float = HEIGHT) -> "tuple[Figure, Axes]":
    """Return a figure with one pair of axes and room for their labels; call inside `themed`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    # To the right: half of the last number below the axis, up to a hundred thousand.
    left, bottom, right, top = 0.62, 0.5, 0.3, 0.12
    axes = figure.add_axes(
        (left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, 1 - (bottom + top) / height)
    )
    return figure, axes


def legend_above(axes: "Axes") -> None:
    """Put the legend on top of the axes and make the figure taller by as much."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = max(1, min(6, 66 // (max(map(len, labels)) + 6)))
    lines = -(-len(handles) // columns)
    heighten(axes, 0.17 * lines + 0.06)
    axes.legend(
        handles,
        [shorten(label, 60) for label in labels],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=columns,
        handlelength=1.6,
        columnspacing=1.2,
        borderpad=0.1,
        labelspacing=0.3,
    )


def heighten(axes: "Axes", extra: float) -> None:
    """Add `extra` inches above the axes."""
    figure = axes.figure.get_figure(root=True)
    if figure is None:
        return
    width, height = figure.get_size_inches()
    box = axes.get_position()
    figure.set_size_inches(width, height + extra)
    grown = height + extra
    axes.set_position((box.x0, box.y0 * height / grown, box.width, box.height * height / grown))


def stream_axis(axes: "Axes", samples: int) -> None:
    """Let x count the images of the stream."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_xlim(0, max(samples, 1))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("images of the stream")


def log_axis(axes: "Axes", values: Sequence[float], ticks_at_values: bool = True) -> None:
    """Let x be logarithmic if `values` are above 0 and far apart, with plain numbers at its ticks.

    A handful of values, if they are round, can be the ticks themselves.
    """
    low, high = min(values), max(values)
    if low <= 0 or high < 4 * low:
        return
    axes.set_xscale("log")
    log_ticks(axes.xaxis, low, high)
    if (
        ticks_at_values
        and len(values) <= 8
        and all(b > 1.25 * a for a, b in pairwise(sorted(values)))
    ):
        axes.set_xticks(values, [f"{value:.3g}" for value in values])


def log_ticks(axis: "Axis", low: float, high: float) -> None:
    """Put plain numbers at the ticks of a logarithmic axis from `low` to `high`."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,)))
    axis.set_major_formatter("{x:,g}")
