"""Training loss of new classes over that of old classes along the stream (the paper's figure 5)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.figures.accuracy_over_time import common_boundaries
from sterad.report.section import Methods, ReportFigure, Section, join_names, methods_of
from sterad.report.style import INK, add_legend, line_style, make_figure, set_log_ticks, use_theme
from sterad.results.grouping import Layout
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_WINDOW = 5  # steps in the moving average: one batch has few images of a class


def loss_section(layout: Layout) -> Section:
    """Return the section of loss ratios, one figure per setting."""
    figures = []
    for column, label in enumerate(layout.columns):
        methods = methods_of(layout, column)
        names = [name for name, records in methods if loss_ratios(records) is not None]
        if names:
            caption = f"Methods with a loss per sample: {join_names(names)}."
            figures.append(ReportFigure(partial(draw_loss_ratios, methods), label.text, caption))
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


def draw_loss_ratios(methods: Methods) -> "Figure":
    """Draw a line per method that records losses; at 1 the losses of new and old are equal."""
    with use_theme():
        figure, axes = make_figure()
        axes.axhline(1, color=INK, linewidth=0.8, alpha=0.6)
        all_records = [record for _, records in methods for record in records]
        for end in common_boundaries(all_records, "step"):
            axes.axvline(end, color=INK, alpha=0.35, lw=0.8, ls=":")
        for index, (name, records) in enumerate(methods):
            ratios = loss_ratios(records)
            if ratios is not None:
                style = line_style(index)
                axes.plot(*ratios, color=style.color, linestyle=style.dash, lw=1.5, label=name)
        axes.set_yscale("log")
        set_log_ticks(axes.yaxis, *axes.get_ylim())
        axes.set_xlim(0, max(record.stream.steps for record in all_records))
        axes.set_xlabel("stream batches")
        axes.set_ylabel("loss of new / old classes")
        axes.grid(axis="y")
        add_legend(axes)
        return figure
