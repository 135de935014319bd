"""Accuracy on all seen classes as the stream goes by: one line per method, a band over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sterad.report.style import legend_above, one_panel, stream_axis, strokes, themed
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Accuracy in per cent over the images of the stream, for several seeds."""

    samples: Numbers
    low: Numbers
    mean: Numbers
    high: Numbers


def curve(records: Sequence[RunRecord]) -> Curve:
    """Return mean, lowest and highest accuracy over seeds at every moment of any of them.

    Seeds whose tasks differ in length are evaluated at different moments: between its own moments
    a seed is interpolated linearly, and only the stretch that all seeds cover is kept.
    """
    lines = [_line(record) for record in records]
    start, stop = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    samples = np.unique(np.concatenate([x for x, _ in lines]))
    samples = samples[(samples >= start) & (samples <= stop)]
    values = np.stack([np.interp(samples, x, y) for x, y in lines])
    return Curve(samples, values.min(axis=0), values.mean(axis=0), values.max(axis=0))


def _line(record: RunRecord) -> tuple[Numbers, Numbers]:
    by_sample = {moment.samples: 100 * moment.accuracy for moment in record.moments}
    samples = sorted(by_sample)
    return np.array(samples, float), np.array([by_sample[sample] for sample in samples], float)


def shared_boundaries(records: Sequence[RunRecord]) -> tuple[int, ...]:
    """Return the announced ends of tasks that all records have in common, the last one aside."""
    ends = {tuple(m.samples for m in record.moments if m.boundary) for record in records}
    return ends.pop()[:-1] if len(ends) == 1 else ()


def draw(methods: Sequence[tuple[str, Sequence[RunRecord]]]) -> "Figure":
    """Draw one line per method; one without records keeps its color for the other figures."""
    with themed():
        figure, axes = one_panel()
        records = [record for _, found in methods for record in found]
        for end in shared_boundaries(records):
            axes.axvline(end, color=axes.xaxis.label.get_color(), alpha=0.35, lw=0.8, ls=":")
        for index, (name, found) in enumerate(methods):
            if found:
                _draw_method(axes, index, name, curve(found), many=len(found) > 1)
        axes.set_ylim(0, min(102.0, 1.1 * max(axes.dataLim.y1, 1.0)))
        axes.set_ylabel("accuracy on seen classes (%)")
        axes.grid(axis="y")
        stream_axis(axes, max((record.stream.samples for record in records), default=1))
        legend_above(axes)
        return figure


def _draw_method(axes: "Axes", index: int, name: str, line: Curve, many: bool) -> None:
    look = strokes(index)
    every: Any = max(1, len(line.samples) // 12)
    if many:
        axes.fill_between(
            line.samples, line.low, line.high, color=look.color, alpha=0.18, linewidth=0
        )
    axes.plot(
        line.samples,
        line.mean,
        color=look.color,
        linestyle=look.dash,
        marker=look.marker,
        markersize=3.6,
        markevery=every,
        linewidth=1.7,
        label=name,
        clip_on=False,
    )
