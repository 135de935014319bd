"""How long each method takes: a bar per method (the paper's figure 4)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sterad.report.style import INK, WIDTH, one_panel, strokes, themed
from sterad.report.wording import shorten
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Methods = Sequence[tuple[str, Sequence[RunRecord]]]
_UNITS = ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def unit_for(seconds: float) -> tuple[float, str]:
    """Return the largest unit of which there are two or more: its seconds and its name.

    >>> unit_for(7300.0), unit_for(100.0)
    ((3600.0, 'hours'), (1.0, 'seconds'))
    """
    return next((unit for unit in _UNITS if seconds >= 2 * unit[0]), _UNITS[-1])


def draw(methods: Methods) -> "Figure":
    """Draw mean times over seeds, whiskers from the quickest to the slowest."""
    present = [index for index, (_, records) in enumerate(methods) if records]
    times = {index: [record.seconds for record in methods[index][1]] for index in present}
    size, unit = unit_for(max(max(seconds) for seconds in times.values()))
    with themed():
        figure, axes = one_panel(height=0.75 + 0.24 * len(present))
        for place, index in enumerate(present):
            _draw_bar(axes, place, index, [seconds / size for seconds in times[index]])
        names = [shorten(methods[index][0], 28) for index in present]
        axes.set_yticks(range(len(present)), names)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        _make_room(axes, max(map(len, names)))
        axes.margins(x=0.14)
        axes.set_xlim(left=0)
        axes.set_xlabel(f"{unit} of a run")
        axes.grid(axis="x")
        return figure


def _draw_bar(axes: "Axes", place: int, index: int, times: Sequence[float]) -> None:
    mean = summarize(times).mean
    axes.barh(place, mean, 0.7, color=strokes(index).color)
    if max(times) > min(times):
        reach = [[mean - min(times)], [max(times) - mean]]
        axes.errorbar(mean, place, xerr=reach, fmt="none", ecolor=INK, elinewidth=0.8)
    written = f"{mean:,.0f}" if mean >= 100 else f"{mean:.1f}"
    axes.annotate(
        written,
        (max(times), place),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        size=8,
    )


def _make_room(axes: "Axes", letters: int) -> None:
    box = axes.get_position()
    left = (0.2 + 0.072 * letters) / WIDTH
    axes.set_position((left, box.y0, box.x1 - left, box.height))
