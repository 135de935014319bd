"""Loss of new classes over that of old ones along the stream (the paper's figure 5)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.style import INK, legend_above, log_ticks, one_panel, strokes, themed
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Numbers = NDArray[np.float64]
Methods = Sequence[tuple[str, Sequence[RunRecord]]]
_SMOOTHED = 5  # watched steps whose ratios are averaged: one batch holds few images of a class


def ratios(records: Sequence[RunRecord]) -> tuple[Numbers, Numbers] | None:
    """Return steps (t,) and the ratio there (t,), a geometric mean over seeds and nearby steps."""
    lines = [
        np.array(
            [(step, np.log(new / old)) for step, new, old in record.losses if min(new, old) > 0]
        )
        for record in records
    ]
    lines = [line for line in lines if len(line) >= _SMOOTHED]
    if not lines:
        return None
    steps = np.unique(np.concatenate([line[:, 0] for line in lines]))
    mean = np.mean([np.interp(steps, *line.T) for line in lines], axis=0)
    around = np.convolve(np.pad(mean, _SMOOTHED // 2, mode="edge"), np.ones(_SMOOTHED), "valid")
    return steps, np.exp(around / _SMOOTHED)


def draw(methods: Methods) -> "Figure":
    """Draw a line per method that says its losses; at 1 new and old classes are learned alike."""
    with themed():
        figure, axes = one_panel()
        axes.axhline(1, color=INK, linewidth=0.8, alpha=0.6)
        for end in _shared_ends([record for _, records in methods for record in records]):
            axes.axvline(end, color=INK, alpha=0.35, lw=0.8, ls=":")
        for index, (name, records) in enumerate(methods):
            found = ratios(records)
            if found is not None:
                look = strokes(index)
                axes.plot(*found, color=look.color, linestyle=look.dash, lw=1.5, label=name)
        axes.set_yscale("log")
        log_ticks(axes.yaxis, *axes.get_ylim())
        axes.set_xlim(0, max(r.stream.steps for _, records in methods for r in records))
        axes.set_xlabel("batches of the stream")
        axes.set_ylabel("loss of new / old classes")
        axes.grid(axis="y")
        legend_above(axes)
        return figure


def _shared_ends(records: Sequence[RunRecord]) -> tuple[int, ...]:
    ends = {tuple(m.step for m in record.moments if m.boundary) for record in records}
    return ends.pop()[:-1] if len(ends) == 1 else ()
