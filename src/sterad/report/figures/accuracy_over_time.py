"""Accuracy on all seen classes along the stream: one line per method, a band over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sterad.report.section import Methods, ReportFigure, Section, join_ranked, methods_of
from sterad.report.style import add_legend, line_style, make_figure, set_stream_axis, use_theme
from sterad.results.grouping import Layout
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


def accuracy_section(layout: Layout) -> Section:
    """Return the section of accuracy along the stream, one figure per setting."""
    figures = []
    for column, label in enumerate(layout.columns):
        methods = methods_of(layout, column)
        final = {
            name: summarize(record.moments[-1].accuracy for record in records).mean
            for name, records in methods
            if records
        }
        caption = f"At the end: {join_ranked(final, '%', highest_first=True)}."
        figures.append(ReportFigure(partial(draw_accuracy, methods), label.text, caption))
    return Section(
        "time",
        "Accuracy over time",
        "Accuracy on the test images of all classes seen so far, along the stream. Lines are means "
        "over seeds, bands range from the lowest to the highest seed, dotted vertical lines are "
        "announced ends of tasks.",
        tuple(figures),
    )


@dataclass(frozen=True)
class Curve:
    """Accuracy in percent over the stream images, for several seeds."""

    samples: Floats
    low: Floats
    mean: Floats
    high: Floats


def average_seeds(records: Sequence[RunRecord]) -> Curve:
    """Return mean, lowest and highest accuracy over seeds at every moment of any seed.

    Seeds whose tasks differ in length are evaluated at different moments. The accuracy of a seed is
    interpolated linearly between its moments, and only the range that all seeds cover is kept.
    """
    lines = [_accuracies(record) for record in records]
    start, stop = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    samples = np.unique(np.concatenate([x for x, _ in lines]))
    samples = samples[(samples >= start) & (samples <= stop)]
    values = np.stack([np.interp(samples, x, y) for x, y in lines])
    return Curve(samples, values.min(axis=0), values.mean(axis=0), values.max(axis=0))


def _accuracies(record: RunRecord) -> tuple[Floats, Floats]:
    by_sample = {moment.samples: 100 * moment.accuracy for moment in record.moments}
    samples = sorted(by_sample)
    return np.array(samples, float), np.array([by_sample[sample] for sample in samples], float)


def common_boundaries(
    records: Sequence[RunRecord], unit: Literal["samples", "step"] = "samples"
) -> tuple[int, ...]:
    """Return the announced ends of tasks if all records have the same ones, without the last."""
    ends = {tuple(getattr(m, unit) for m in record.moments if m.boundary) for record in records}
    return ends.pop()[:-1] if len(ends) == 1 else ()


def draw_accuracy(methods: Methods) -> "Figure":
    """Draw one line per method; the color of a method without records is not reused."""
    with use_theme():
        figure, axes = make_figure()
        all_records = [record for _, records in methods for record in records]
        for end in common_boundaries(all_records):
            axes.axvline(end, color=axes.xaxis.label.get_color(), alpha=0.35, lw=0.8, ls=":")
        for index, (name, records) in enumerate(methods):
            if records:
                _draw_method(axes, index, name, average_seeds(records), band=len(records) > 1)
        axes.set_ylim(0, min(102.0, 1.1 * max(axes.dataLim.y1, 1.0)))
        axes.set_ylabel("accuracy on seen classes (%)")
        axes.grid(axis="y")
        set_stream_axis(axes, max((record.stream.samples for record in all_records), default=1))
        add_legend(axes)
        return figure


def _draw_method(axes: "Axes", index: int, name: str, curve: Curve, band: bool) -> None:
    style = line_style(index)
    marker_spacing: Any = max(1, len(curve.samples) // 12)
    if band:
        axes.fill_between(
            curve.samples, curve.low, curve.high, color=style.color, alpha=0.18, linewidth=0
        )
    axes.plot(
        curve.samples,
        curve.mean,
        color=style.color,
        linestyle=style.dash,
        marker=style.marker,
        markersize=3.6,
        markevery=marker_spacing,
        linewidth=1.7,
        label=name,
        clip_on=False,
    )
