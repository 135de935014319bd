"""Style of all figures: colors for light and dark pages, axes, legends; pyplot is not used."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sterad.optional_imports import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#010203"
"""Placeholder for the text color of the page, which `svg.to_inline_svg` inserts."""
# Okabe and Ito's colors without black and yellow, orange and sky blue a little darker: each has a
# contrast of 2.5 with the light and the dark page, and all pairs are safe for the color-blind.
PALETTE = ("#0072b2", "#ce5300", "#009e73", "#cc79a7", "#db9500", "#47a3e3")
WIDTH, HEIGHT = 4.8, 2.9
"""Inches; at this width text is legible on a desktop and on a phone."""
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", ":", "-.")
_INVALID = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def line_color(index: int) -> str:
    """Return the color of the method at `index` in all figures."""
    return PALETTE[index % len(PALETTE)]


def line_style(index: int, **changes: Any) -> dict[str, Any]:
    """Return keywords of `Axes.plot` for the method at `index`: colors vary first, then dashes."""
    lap, place = divmod(index, len(PALETTE))
    marker, dash = _MARKERS[(place + lap) % len(_MARKERS)], _DASHES[lap % len(_DASHES)]
    return {"color": line_color(index), "linestyle": dash, "marker": marker, **changes}


def task_colors(count: int) -> list[str]:
    """Return a color per task: the palette for a few, a color scale for many."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    import matplotlib
    from matplotlib.colors import to_hex

    scale = matplotlib.colormaps["viridis"]
    return [to_hex(scale(0.1 + 0.8 * index / (count - 1))) for index in range(count)]


def can_draw() -> bool:
    """Return whether matplotlib, which draws all figures, is installed."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # it is loaded without a spec
        return False


@contextmanager
def use_theme() -> Iterator[None]:
    """Set matplotlib's parameters inside the context and restore them afterwards."""
    matplotlib = require_extra("matplotlib", "report")
    # The user's matplotlibrc must not change the page: equal records give equal bytes.
    defaults = {k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith("backend")}
    with matplotlib.rc_context({**defaults, **_THEME}), warnings.catch_warnings():
        # Class names may have characters that matplotlib's font lacks and the browser has.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


_THEME: dict[Any, Any] = {
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


def make_figure(height: float = HEIGHT) -> "tuple[Figure, Axes]":
    """Return a figure with one pair of axes and room for their labels; call inside `use_theme`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    # The right margin fits half of the last tick label, up to a hundred thousand.
    left, bottom, right, top = 0.62, 0.5, 0.3, 0.12
    axes = figure.add_axes(
        (left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, 1 - (bottom + top) / height)
    )
    return figure, axes


def add_legend(axes: "Axes") -> None:
    """Add a legend above the axes and increase the height of the figure for it."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    columns = max(1, min(6, 66 // (max(map(len, labels)) + 6)))
    rows = -(-len(handles) // columns)
    figure = axes.get_figure(root=True)
    assert figure is not None
    box, (width, height) = axes.get_position(), figure.get_size_inches()
    total = height + (0.17 * rows + 0.06)
    figure.set_size_inches(width, total)
    axes.set_position((box.x0, box.y0 * height / total, box.width, box.height * height / total))
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


def set_stream_axis(axes: "Axes", samples: int) -> None:
    """Make x the number of stream images."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set(xlim=(0, max(samples, 1)), xlabel="stream images")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def set_log_axis(axes: "Axes", values: Sequence[float], ticks_at_values: bool = True) -> None:
    """Make x logarithmic if `values` are positive and range over a factor of 4 or more.

    ticks_at_values: use the values as ticks if there are at most 8 and their labels do not overlap.
    """
    low, high = min(values), max(values)
    if low <= 0 or high < 4 * low:
        return
    axes.set_xscale("log")
    set_log_ticks(axes.xaxis, low, high)
    has_room = len(values) <= 8 and all(b > 1.25 * a for a, b in pairwise(sorted(values)))
    if ticks_at_values and has_room:
        axes.set_xticks(values, [f"{value:.3g}" for value in values])


def set_log_ticks(axis: "Axis", low: float, high: float) -> None:
    """Use plain numbers as tick labels of a logarithmic axis from `low` to `high`."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,)))
    axis.set_major_formatter("{x:,g}")


def replace_invalid(text: str) -> str:
    r"""Replace characters that are invalid in XML or UTF-8.

    >>> replace_invalid("a\x00b")
    'a�b'
    """
    return _INVALID.sub("\ufffd", text)


def shorten(text: str, limit: int = 18) -> str:
    """Return a name in one line with at most `limit` characters.

    >>> shorten("a very long name of a class", 12)
    'a very long…'
    """
    line = " ".join(replace_invalid(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def tick_labels(names: Sequence[str], width: int = 56) -> list[str]:
    """Return names as tick labels, or numbers if the names need more than `width` characters.

    >>> tick_labels(["task 1", "task 2"]), tick_labels(["a long name"] * 3, 20)
    (['task 1', 'task 2'], ['1', '2', '3'])
    """
    if (max(map(len, names), default=0) + 2) * len(names) <= width:
        return [shorten(name, width) for name in names]
    return [str(number) for number in range(1, len(names) + 1)]
