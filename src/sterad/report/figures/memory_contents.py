"""What the memory holds over time: images per class, stacked, in the color of their task."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.figures.class_proportions import tells_tasks_apart
from sterad.report.style import legend_above, one_panel, stream_axis, task_colors, themed
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_CLASSES = 30


def keeps_images(record: RunRecord) -> bool:
    """Say whether the method had a memory."""
    return any(moment.memory for moment in record.moments)


def holdings(record: RunRecord) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return stream positions (t,) and images held per class (t, classes), from the empty start."""
    classes = len(record.stream.class_names)
    held = {0: np.zeros(classes, np.int64)}
    for moment in record.moments:
        counts = (*moment.memory, *[0] * (classes - len(moment.memory)))
        held[moment.samples] = np.array(counts, np.int64)
    samples = sorted(held)
    return np.array(samples, np.int64), np.stack([held[sample] for sample in samples])


def draw(record: RunRecord) -> "Figure":
    """Draw the stack, the first task at the bottom; fine lines part classes where they are few."""
    samples, held = holdings(record)
    tasks = record.stream.tasks if tells_tasks_apart(record.stream) else ()
    with themed():
        figure, axes = one_panel()
        if tasks:
            _stack(axes, samples, held, tasks, [f"task {task + 1}" for task in range(len(tasks))])
        else:
            everything = (tuple(range(held.shape[1])),)
            _stack(axes, samples, held, everything, ["all classes"])
        axes.set_ylim(0, 1.02 * max(1, int(held.sum(axis=1).max())))
        axes.set_ylabel("images in memory")
        stream_axis(axes, record.stream.samples)
        legend_above(axes)
        return figure


def _stack(
    axes: "Axes",
    samples: NDArray[np.int64],
    held: NDArray[np.int64],
    tasks: tuple[tuple[int, ...], ...],
    names: list[str],
) -> None:
    floor = np.zeros(len(samples))
    fine = held.shape[1] <= _MOST_CLASSES
    for task, name, color in zip(tasks, names, task_colors(len(tasks)), strict=True):
        label = name if len(tasks) <= 12 else None
        top = floor + held[:, list(task)].sum(axis=1)
        axes.fill_between(samples, floor, top, color=color, alpha=0.75, linewidth=0, label=label)
        for c in task if fine else ():
            floor = floor + held[:, c]
            axes.plot(samples, floor, color="#ffffff", linewidth=0.5, alpha=0.6)
        floor = top
