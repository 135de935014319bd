"""Curves along the stream: accuracy on seen classes, and the loss of new over old classes."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sterad.report.section import (
    Methods,
    ReportFigure,
    Section,
    join_names,
    join_ranked,
    methods_by_setting,
)
from sterad.report.style import (
    INK,
    PALETTE,
    add_legend,
    line_color,
    line_style,
    make_figure,
    set_log_ticks,
    set_stream_axis,
    use_theme,
)
from sterad.results.grouping import Layout
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_WINDOW = 5  # steps in the moving average of losses: one batch has few images of a class


def accuracy_section(layout: Layout) -> Section:
    """Return the section of accuracy along the stream, one figure per setting."""
    figures = []
    for setting, methods in methods_by_setting(layout):
        final = {
            name: fmean(record.final_average_accuracy for record in records)
            for name, records in methods
            if records
        }
        caption = f"Final average accuracy: {join_ranked(final, '%', highest_first=True)}."
        figures.append(ReportFigure(partial(draw_accuracy, methods), setting, caption))
    return Section(
        "time",
        "Accuracy over time",
        "Accuracy on the test images of all classes seen so far, along the stream. Lines are means "
        "over seeds, bands range from the lowest to the highest seed, dotted vertical lines are "
        "announced ends of tasks. Every test image counts the same here; the final average "
        "accuracy is a mean over tasks if their ends are announced, so it may differ slightly from "
        "the end of a line.",
        tuple(figures),
    )


def interpolate_seeds(records: Sequence[RunRecord]) -> tuple[Floats, Floats]:
    """Return the moments of any seed (t,) and the accuracies in percent of all seeds (seeds, t).

    Seeds whose tasks differ in length are evaluated at different moments. The accuracy of a seed is
    interpolated linearly between its moments, and only the range that all seeds cover is kept.
    """
    lines = [
        np.array(sorted({m.samples: 100 * m.accuracy for m in record.moments}.items()), float).T
        for record in records
    ]
    start, stop = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    samples = np.unique(np.concatenate([x for x, _ in lines]))
    samples = samples[(samples >= start) & (samples <= stop)]
    return samples, np.stack([np.interp(samples, x, y) for x, y in lines])


def common_boundaries(
    records: Sequence[RunRecord], unit: Literal["samples", "step"] = "samples"
) -> tuple[int, ...]:
    """Return the announced ends of tasks if all records have the same ones, without the last."""
    ends = {tuple(getattr(m, unit) for m in record.moments if m.boundary) for record in records}
    return ends.pop()[:-1] if len(ends) == 1 else ()


@use_theme()
def draw_accuracy(methods: Methods) -> "Figure":
    """Draw one line per method; the color of a method without records is not reused."""
    figure, axes = make_figure()
    all_records = [record for _, records in methods for record in records]
    band_opacity = 0.18 if len(methods) <= len(PALETTE) else 0.06  # many bands hide the lines
    for end in common_boundaries(all_records):
        axes.axvline(end, color=INK, alpha=0.35, lw=0.8, ls=":")
    for index, (name, records) in enumerate(methods):
        if not records:
            continue
        x, y = interpolate_seeds(records)
        if len(records) > 1:
            low, high = y.min(axis=0), y.max(axis=0)
            color = line_color(index)
            axes.fill_between(x, low, high, color=color, alpha=band_opacity, linewidth=0)
        spacing: Any = max(1, len(x) // 12)
        style = line_style(index, markersize=3.6, markevery=spacing, linewidth=1.7, clip_on=False)
        axes.plot(x, y.mean(axis=0), **style, label=name)
    highest = min(102.0, 1.1 * max(axes.dataLim.y1, 1.0))
    axes.set(ylim=(0, highest), ylabel="accuracy on seen classes (%)")
    axes.grid(axis="y")
    set_stream_axis(axes, max(record.stream.samples for record in all_records))
    add_legend(axes)
    return figure


def loss_section(layout: Layout) -> Section:
    """Return the section of loss ratios (the paper's figure 5), one figure per setting."""
    figures = []
    for setting, methods in methods_by_setting(layout):
        names = [name for name, records in methods if loss_ratios(records) is not None]
        if names:
            caption = f"Methods with a loss per sample: {join_names(names)}."
            figures.append(ReportFigure(partial(draw_loss_ratios, methods), setting, caption))
    return Section(
        "loss",
        "Loss of new and old classes",
        "Training loss of the classes of the current task over that of earlier tasks, in the same "
        "batches. Above 1, new classes have the larger loss. Dotted vertical lines are announced "
        "ends of tasks.",
        tuple(figures),
        () if figures else (f"No record has losses by class at {_WINDOW} or more steps.",),
    )


def loss_ratios(records: Sequence[RunRecord]) -> tuple[Floats, Floats] | None:
    """Return steps (t,) and ratios (t,), geometric means over seeds and neighboring steps."""
    logs = [
        np.array(
            [(step, np.log(new / old)) for step, new, old in record.losses if min(new, old) > 0]
        )
        for record in records
    ]
    logs = [log for log in logs if len(log) >= _WINDOW]
    if not logs:
        return None
    steps = np.unique(np.concatenate([log[:, 0] for log in logs]))
    mean = np.mean([np.interp(steps, *log.T) for log in logs], axis=0)
    window_sums = np.convolve(np.pad(mean, _WINDOW // 2, mode="edge"), np.ones(_WINDOW), "valid")
    return steps, np.exp(window_sums / _WINDOW)


@use_theme()
def draw_loss_ratios(methods: Methods) -> "Figure":
    """Draw a line per method that records losses; at 1 the losses of new and old are equal."""
    figure, axes = make_figure()
    axes.axhline(1, color=INK, linewidth=0.8, alpha=0.6)
    all_records = [record for _, records in methods for record in records]
    for end in common_boundaries(all_records, "step"):
        axes.axvline(end, color=INK, alpha=0.35, lw=0.8, ls=":")
    for index, (name, records) in enumerate(methods):
        ratios = loss_ratios(records)
        if ratios is not None:
            axes.plot(*ratios, **line_style(index, marker=""), lw=1.5, label=name)
    axes.set_yscale("log")
    set_log_ticks(axes.yaxis, *axes.get_ylim())
    steps = max(record.stream.steps for record in all_records)
    axes.set(xlim=(0, steps), xlabel="stream batches", ylabel="loss of new / old classes")
    axes.grid(axis="y")
    add_legend(axes)
    return figure
