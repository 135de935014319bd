"""Classes along the stream: their share of the incoming images, and their images in memory."""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sterad.report.section import (
    ReportFigure,
    Run,
    Section,
    method_names,
    note_methods_without,
    run_figures,
    seed_of,
)
from sterad.report.style import add_legend, make_figure, set_stream_axis, task_colors, use_theme
from sterad.results.grouping import Layout, flatten, format_setting
from sterad.results.record import RunRecord, StreamFacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_MIN_IMAGES_PER_POINT = 30  # of a blurry stream; shares of fewer images are mostly noise
_MAX_NAMED_TASKS = 12
_MAX_CLASS_LINES = 30


def stream_section(layout: Layout) -> Section:
    """Return the section of streams, one figure per distinct stream."""
    streams: dict[str, RunRecord] = {}
    for _, _, records in layout.groups():
        streams.setdefault(_stream_name(records[0]), records[0])
    figures, notes = [], set()
    for name, record in streams.items():
        stream = record.stream
        if has_disjoint_tasks(stream):
            state = "announced" if stream.announced else "not announced"
            caption = f"{stream.samples:,} images; ends of tasks are {state}."
            figures.append(ReportFigure(partial(draw_proportions, stream), name, caption))
        else:
            notes.add(f"Not drawn: the tasks of the {stream.name} stream share classes.")
    return Section(
        "stream",
        "The stream",
        "Share of the classes of each task among the incoming images. With clear boundaries a task "
        "ends where the next begins; with blurry boundaries neighboring tasks overlap, and the "
        "method does not know when a task ends.",
        tuple(figures),
        tuple(sorted(notes)),
    )


def _stream_name(record: RunRecord) -> str:
    parts = [
        format_setting(path, float(f"{value:.4g}") if isinstance(value, float) else value)
        for path, value in flatten(record.config).items()
        if path.startswith(("dataset.name", "stream.")) and value is not None
    ]
    return ", ".join([*(parts or [record.stream.name]), f"seed {seed_of(record)}"])


def has_disjoint_tasks(stream: StreamFacts) -> bool:
    """Return whether there are several tasks without common classes, and known proportions."""
    classes = [c for task in stream.tasks for c in task]
    is_disjoint = len(classes) == len(set(classes))
    return is_disjoint and len(stream.tasks) > 1 and len(stream.proportions) > 0


def task_shares(stream: StreamFacts) -> tuple[Floats, Floats]:
    """Return edges of intervals (t + 1,) in images and shares of tasks in percent (t, tasks).

    If the tasks follow each other and their ends are announced, the intervals are the tasks, with
    exact edges. Otherwise they are the parts of the record; short parts of a blurry stream are
    joined, as shares of few images are mostly noise.
    """
    ends = task_ends(stream)
    if ends:
        return np.array([0, *ends], float), 100 * np.eye(len(ends))
    counts = np.array(stream.proportions, np.int64).reshape(-1, len(stream.class_names))
    joined = 1
    if not stream.announced:
        joined = math.ceil(_MIN_IMAGES_PER_POINT * len(counts) / max(counts.sum(), 1))
    counts = np.add.reduceat(counts, np.arange(0, len(counts), max(1, joined)))
    totals = counts.sum(axis=1)
    shares = 100 * _count_by_task(stream, counts) / np.maximum(totals, 1)[:, None]
    return np.append(0.0, totals.cumsum()), shares


def task_ends(stream: StreamFacts) -> tuple[int, ...]:
    """Return the position of the end of each task in images; empty if tasks are not separate.

    The record has counts of parts of the stream, and a part may contain the end of a task. If all
    images of a task come before those of the next, the totals of the tasks are the exact ends.
    Only announced ends are trusted: a short blurry boundary inside one part has the same counts.
    """
    if not stream.announced or not has_disjoint_tasks(stream):
        return ()
    counts = np.array(stream.proportions, np.int64)
    by_task = _count_by_task(stream, counts)
    edges = np.append(0, counts.sum(axis=1).cumsum())
    ends = by_task.sum(axis=0).cumsum()
    starts = np.append(0, ends[:-1])
    last, first = np.minimum.outer(edges[1:], ends), np.maximum.outer(edges[:-1], starts)
    is_separate = np.array_equal(by_task, np.maximum(last - first, 0))
    return tuple(ends.tolist()) if is_separate else ()


def _count_by_task(stream: StreamFacts, counts: Integers) -> Integers:
    """Return the images of each task in each part, (parts, tasks), from those of each class."""
    return np.stack([counts[:, list(task)].sum(axis=1) for task in stream.tasks], axis=1)


@use_theme()
def draw_proportions(stream: StreamFacts) -> "Figure":
    """Draw the share of each task along the stream as a filled line (the paper's figure 2)."""
    edges, shares = task_shares(stream)
    # Clear boundaries are vertical lines at their exact position; sloped lines would look blurry.
    step: Any = "post" if stream.announced else None
    drawstyle: Any = "steps-post" if stream.announced else "default"
    middles = np.concatenate([[0.0], (edges[:-1] + edges[1:]) / 2, edges[-1:]])
    figure, axes = make_figure()
    for task, color in enumerate(task_colors(len(stream.tasks))):
        y = np.pad(shares[:, task], (int(not stream.announced), 1), mode="edge")
        x = edges if stream.announced else middles
        axes.fill_between(x, y, step=step, color=color, alpha=0.28, linewidth=0)
        name = f"task {task + 1}" if len(stream.tasks) <= _MAX_NAMED_TASKS else None
        axes.plot(x, y, drawstyle=drawstyle, color=color, linewidth=1.5, label=name)
    axes.set(ylim=(0, 102), ylabel="share of incoming images (%)")
    axes.grid(axis="y")
    set_stream_axis(axes, stream.samples)
    add_legend(axes)
    return figure


def memory_section(runs: Sequence[Run], notes: Sequence[str]) -> Section:
    """Return the section of memory contents, one figure per run with a memory."""
    with_memory = [run for run in runs if any(m.memory for m in run.record.moments)]
    without = method_names([run for run in runs if run not in with_memory])
    return Section(
        "memory",
        "Memory contents",
        "Images in memory, stacked in the order of the tasks: one color per task, and fine lines "
        f"between classes if there are at most {_MAX_CLASS_LINES}.",
        run_figures(with_memory, draw_memory, _describe_memory),
        (*notes, *note_methods_without(without, "memory")),
    )


def _describe_memory(record: RunRecord) -> str:
    counts = record.moments[-1].memory
    return f"At the end {sum(counts):,} images of {sum(n > 0 for n in counts)} classes."


def memory_counts(record: RunRecord) -> tuple[Integers, Integers]:
    """Return stream positions (t,) and images in memory (t, classes), from the empty memory on."""
    classes = len(record.stream.class_names)
    by_sample = {0: np.zeros(classes, np.int64)}
    for moment in record.moments:
        counts = np.array(moment.memory, np.int64)
        by_sample[moment.samples] = np.pad(counts, (0, classes - len(counts)))
    samples = sorted(by_sample)
    return np.array(samples, np.int64), np.stack([by_sample[sample] for sample in samples])


@use_theme()
def draw_memory(record: RunRecord) -> "Figure":
    """Draw the images in memory as stacked areas, the first task at the bottom."""
    samples, counts = memory_counts(record)
    tasks: tuple[tuple[int, ...], ...] = (tuple(range(counts.shape[1])),)
    names = ["all classes"]
    if has_disjoint_tasks(record.stream):
        tasks = record.stream.tasks
        names = [f"task {task + 1}" for task in range(len(tasks))]
    figure, axes = make_figure()
    bottom = np.zeros(len(samples))
    for task, name, color in zip(tasks, names, task_colors(len(tasks)), strict=True):
        label = name if len(tasks) <= _MAX_NAMED_TASKS else None
        top = bottom + counts[:, list(task)].sum(axis=1)
        axes.fill_between(samples, bottom, top, color=color, alpha=0.75, linewidth=0, label=label)
        for c in task if counts.shape[1] <= _MAX_CLASS_LINES else ():
            bottom = bottom + counts[:, c]
            axes.plot(samples, bottom, color="#ffffff", linewidth=0.5, alpha=0.6)
        bottom = top
    highest = 1.02 * max(1, int(counts.sum(axis=1).max()))
    axes.set(ylim=(0, highest), ylabel="images in memory")
    set_stream_axis(axes, record.stream.samples)
    add_legend(axes)
    return figure
