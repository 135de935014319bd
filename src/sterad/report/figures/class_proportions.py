"""What the stream brings when: the share of each task's classes along it (the paper's figure 2)."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sterad.report.style import legend_above, one_panel, stream_axis, task_colors, themed
from sterad.results.record import StreamFacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Numbers = NDArray[np.float64]
_FEWEST = 30  # images in a stretch of a blurry stream


def tells_tasks_apart(stream: StreamFacts) -> bool:
    """Say whether no class belongs to two tasks: only then does a class give its task away."""
    classes = [c for task in stream.tasks for c in task]
    several = len(stream.tasks) > 1 and len(stream.proportions) > 0
    return several and len(classes) == len(set(classes))


def task_shares(stream: StreamFacts) -> tuple[Numbers, Numbers]:
    """Return the middles of stretches (t,) and each task's share there in per cent (t, tasks).

    Where boundaries are blurry, short stretches are joined: the share among a handful of images is
    mostly noise.
    """
    counts = np.array(stream.proportions, float).reshape(-1, len(stream.class_names))
    joined = math.ceil(_FEWEST * len(counts) / max(counts.sum(), 1)) if not stream.announced else 1
    starts = np.arange(0, len(counts), max(1, joined))
    edges = np.append(starts, len(counts)) * stream.samples / len(counts)
    counts = np.add.reduceat(counts, starts)
    tasks = np.stack([counts[:, list(task)].sum(axis=1) for task in stream.tasks], axis=1)
    shares = 100 * tasks / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return (edges[:-1] + edges[1:]) / 2, shares


def draw(stream: StreamFacts) -> "Figure":
    """Draw the share of each task over the stream as a filled line."""
    middles, shares = task_shares(stream)
    x = np.concatenate([[0.0], middles, [float(stream.samples)]])
    # Sharp ends are drawn sharp; slopes between stretches would look like a blur.
    step: Any = "mid" if stream.announced else None
    style: Any = "steps-mid" if stream.announced else "default"
    with themed():
        figure, axes = one_panel()
        for task, color in enumerate(task_colors(len(stream.tasks))):
            y = np.pad(shares[:, task], 1, mode="edge")
            axes.fill_between(x, y, step=step, color=color, alpha=0.28, linewidth=0)
            name = f"task {task + 1}" if len(stream.tasks) <= 12 else None
            axes.plot(x, y, drawstyle=style, color=color, linewidth=1.5, label=name)
        axes.set_ylim(0, 102)
        axes.set_ylabel("share of the incoming images (%)")
        axes.grid(axis="y")
        stream_axis(axes, stream.samples)
        legend_above(axes)
        return figure
