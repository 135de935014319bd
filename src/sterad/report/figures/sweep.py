"""Final accuracy over a number that was varied; of the concentration it is the paper's figure 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from sterad.report.style import legend_above, log_axis, one_panel, strokes, themed
from sterad.results.grouping import Settings, flatten, varying, words
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 3
"""Values without which a line says nothing."""
Points = tuple[tuple[float, tuple[float, ...]], ...]
"""Rising x, and at each the final average accuracy of every seed."""
VARIANCE = "method.variance"
"""Drawn as the concentration κ² = 1 / variance, as the paper does."""


@dataclass(frozen=True)
class Sweep:
    """One number varied, everything else in a line equal but the seed."""

    path: str
    name: str
    """The settings of the figure beside those of its lines."""
    lines: tuple[tuple[str, Points], ...]
    """A name and its points."""

    @property
    def title(self) -> str:
        """What is on the axis."""
        return "concentration κ² = 1 / variance" if self.path == VARIANCE else _field(self.path)


def _field(path: str) -> str:
    return path.rpartition(".")[2].replace("_", " ")


def find_sweeps(records: Sequence[RunRecord]) -> list[Sweep]:
    """Return every number that takes three values or more, with the lines that it forms."""
    runs = [(record, flatten(record.config)) for record in records]
    changing = varying([run for _, run in runs])
    numeric = [path for path in changing if _is_numeric(path, [run for _, run in runs])]
    return [sweep for path in numeric for sweep in _sweeps_of(path, runs, changing)]


def _is_numeric(path: str, runs: Sequence[Settings]) -> bool:
    values = {run[path] for run in runs if run.get(path) is not None}
    plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return plain and len(values) >= FEWEST and (path != VARIANCE or min(values) > 0)


def _sweeps_of(
    path: str, runs: Sequence[tuple[RunRecord, Settings]], changing: Sequence[str]
) -> list[Sweep]:
    rest = [other for other in changing if other != path]
    of_line = [other for other in rest if other.startswith("method.")]
    figures: dict[str, dict[str, dict[float, list[float]]]] = {}
    for record, run in runs:
        if run.get(path) is not None:
            outer = _name(run, [other for other in rest if other not in of_line]) or "all runs"
            line = _name(run, ["method.name", *(p for p in of_line if p != "method.name")])
            points = figures.setdefault(outer, {}).setdefault(line, {})
            x = 1 / run[path] if path == VARIANCE else float(run[path])
            points.setdefault(x, []).append(record.final_average_accuracy)
    return [
        Sweep(path, outer, kept)
        for outer, lines in figures.items()
        if (kept := tuple((n, _points(p)) for n, p in sorted(lines.items()) if len(p) >= FEWEST))
    ]


def _name(run: Settings, paths: Sequence[str]) -> str:
    return ", ".join(words(path, run[path]) for path in paths if path in run)


def _points(values: dict[float, list[float]]) -> Points:
    return tuple((x, tuple(values[x])) for x in sorted(values))


def draw(sweep: Sweep) -> "Figure":
    """Draw a line per method; a band reaches from the lowest seed to the highest."""
    with themed():
        figure, axes = one_panel()
        for index, (name, points) in enumerate(sweep.lines):
            _draw_line(axes, index, name, points)
        every = sorted({x for _, points in sweep.lines for x, _ in points})
        log_axis(axes, every)
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]), top=min(102.0, axes.get_ylim()[1]))
        axes.set_xlabel(sweep.title)
        axes.set_ylabel("final average accuracy (%)")
        axes.grid()
        legend_above(axes)
        return figure


def _draw_line(axes: "Axes", index: int, name: str, points: Points) -> None:
    look = strokes(index)
    x = np.array([at for at, _ in points])
    mean, low, high = (
        np.array([100 * of(seeds) for _, seeds in points]) for of in (fmean, min, max)
    )
    axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0)
    axes.plot(
        x,
        mean,
        color=look.color,
        linestyle=look.dash,
        marker=look.marker,
        markersize=4,
        label=name,
    )
