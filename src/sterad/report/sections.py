"""The sections of the page, each with what one sees in its figures."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sterad.report.drawing import Run, Section, Sketch, chosen, draw_section
from sterad.report.figures import (
    accuracy_matrix,
    accuracy_over_time,
    class_proportions,
    forgetting,
    memory_contents,
    sphere,
)
from sterad.report.tables import percent
from sterad.results.grouping import Layout, flatten, spell, words
from sterad.results.record import RunRecord
from sterad.results.statistics import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Methods = list[tuple[str, Sequence[RunRecord]]]


def sections(layout: Layout) -> tuple[Section, ...]:
    """Draw everything that the records of a layout hold."""
    runs, note = chosen(layout)
    return (
        _accuracy_over_time(layout),
        _streams(layout),
        _matrices(runs, note),
        _forgetting(layout),
        _memory(runs, note),
        _spheres(runs, note),
    )


def _methods(layout: Layout, column: int) -> Methods:
    return [(label.text, layout.cell(row, column)) for row, label in enumerate(layout.rows)]


def _accuracy_over_time(layout: Layout) -> Section:
    sketches = []
    for column, label in enumerate(layout.columns):
        methods = _methods(layout, column)
        ends = {name: _mean([r.moments[-1].accuracy for r in rs]) for name, rs in methods if rs}
        caption = f"At the end: {_ranking(ends, '%', best_first=True)}."
        sketches.append(Sketch(partial(accuracy_over_time.draw, methods), label.text, caption))
    return draw_section(
        "time",
        "Accuracy over time",
        "Share of right answers on the test images of all classes seen so far, as the stream goes "
        "by. A line is the mean over seeds, its band reaches from the lowest to the highest seed, "
        "and dotted verticals are announced ends of tasks.",
        sketches,
    )


def _streams(layout: Layout) -> Section:
    distinct: dict[str, RunRecord] = {}
    for _, _, records in layout.groups():
        distinct.setdefault(_stream_name(records[0]), records[0])
    sketches = []
    notes = []
    for name, record in distinct.items():
        stream = record.stream
        if class_proportions.tells_tasks_apart(stream):
            told = "announced" if stream.announced else "not announced"
            caption = f"{stream.samples:,} images; ends of tasks are {told}."
            sketches.append(Sketch(partial(class_proportions.draw, stream), name, caption))
        else:
            notes.append(f"The classes of the {stream.name} stream do not tell its tasks apart.")
    return draw_section(
        "stream",
        "The stream",
        "Which classes arrive when: the share of each task's classes in successive stretches of "
        "the stream. With clear boundaries one task ends where the next begins; with blurry ones "
        "neighbours overlap, and nothing tells the method that a task is over.",
        sketches,
        sorted(set(notes)),
    )


def _stream_name(record: RunRecord) -> str:
    known = flatten(record.config)
    parts = [
        words(path, value)
        for path, value in known.items()
        if path.startswith(("dataset.name", "stream.")) and value is not None
    ]
    return ", ".join([*(parts or [record.stream.name]), words("seed", known.get("seed"))])


def _matrices(runs: Sequence[Run], notes: Sequence[str]) -> Section:
    return draw_section(
        "matrix",
        "Accuracy matrices",
        "Accuracy in per cent on the test images of each task (across) at each moment of the "
        "stream (down). Follow a column downwards to see a task learnt and then kept or lost; in "
        "a blank cell none of its classes had been seen.",
        [
            _sketch(accuracy_matrix.draw, run, _matrix_caption(run.record))
            for run in runs
            if run.record.accuracy_matrix
        ],
        notes,
    )


def _sketch(draw: Callable[[RunRecord], "Figure"], run: Run, caption: str) -> Sketch:
    return Sketch(partial(draw, run.record), run.name, caption, run.first)


def _matrix_caption(record: RunRecord) -> str:
    return f"Final average accuracy {percent(record.final_average_accuracy)} %."


def _forgetting(layout: Layout) -> Section:
    sketches = []
    notes = []
    for column, label in enumerate(layout.columns):
        methods = _methods(layout, column)
        lost = {name: forgetting.per_task(records) for name, records in methods}
        means = {n: _mean([m / 100 for _, m, _ in s.values()]) for n, s in lost.items() if s}
        if means:
            caption = f"Mean over tasks: {_ranking(means, 'points')}."
            sketches.append(Sketch(partial(forgetting.draw, methods), label.text, caption))
        else:
            notes.append(f"{label.text}: no task was evaluated twice, so none can be forgotten.")
    return draw_section(
        "forgetting",
        "Forgetting",
        "The best accuracy that a task had at an earlier moment, minus the one it ends with. Lower "
        "is better; below zero the task gained from what came later. Bars are means over seeds, "
        "whiskers reach from the lowest to the highest seed.",
        sketches,
        notes,
    )


def _memory(runs: Sequence[Run], notes: Sequence[str]) -> Section:
    keeping = [run for run in runs if memory_contents.keeps_images(run.record)]
    without = _names_of([run for run in runs if run not in keeping])
    return draw_section(
        "memory",
        "What the memory holds",
        "Images in memory, stacked in the order of the tasks: colours part tasks, fine lines part "
        "classes.",
        [_sketch(memory_contents.draw, run, _memory_caption(run.record)) for run in keeping],
        [*notes, *(f"{name} keeps no memory." for name in without)],
    )


def _memory_caption(record: RunRecord) -> str:
    held = record.moments[-1].memory
    return f"At the end {sum(held):,} images of {sum(n > 0 for n in held)} classes."


def _spheres(runs: Sequence[Run], notes: Sequence[str]) -> Section:
    fixed = [run for run in runs if run.record.sphere is not None and run.record.sphere.frames]
    without = _names_of([run for run in runs if run not in fixed])
    return draw_section(
        "sphere",
        "Features around their fixed directions",
        "Test images of three classes, one of the first, one of a middle and one of the last task, "
        "in the space of their three fixed directions (squares). A hollow square waits for a class "
        "that the stream has not brought yet; faint points lie on the far side of the sphere.",
        [_sketch(sphere.draw, run, _sphere_caption(run.record)) for run in fixed],
        [*notes, *(f"{name} has no fixed directions to draw." for name in without)],
        wide=True,
    )


def _sphere_caption(record: RunRecord) -> str:
    classes = record.sphere.classes if record.sphere is not None else ()
    names = [record.stream.class_names[label] for label in classes]
    return f"Classes {', '.join(names)}, in the order of their tasks."


def _names_of(runs: Sequence[Run]) -> list[str]:
    return sorted({spell(flatten(run.record.config).get("method.name")) for run in runs})


def _mean(values: Sequence[float]) -> float:
    return summarise(values).mean


def _ranking(values: dict[str, float], unit: str, best_first: bool = False) -> str:
    order = sorted(values.items(), key=lambda pair: pair[1], reverse=best_first)
    shown = [f"{name} {percent(value)} {unit}" for name, value in order[:3]]
    more = len(order) - len(shown)
    return ", ".join(shown) + (f", {more} more" if more > 0 else "")
