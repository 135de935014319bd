"""Sections that look into single runs: a figure per run."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sterad.report.drawing import Plan, Run, Sketch
from sterad.report.figures import accuracy_matrix, confusion, memory_contents, sphere
from sterad.report.tables import percent
from sterad.results.grouping import flatten, spell
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def matrix_section(runs: Sequence[Run], notes: Sequence[str]) -> Plan:
    """Draw the accuracy on each task at each moment."""
    return Plan(
        "matrix",
        "Accuracy matrices",
        "Accuracy in per cent on the test images of each task (across) at each moment of the "
        "stream (down). Follow a column downwards to see a task learned and then kept or lost; in "
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


def confusion_section(runs: Sequence[Run], notes: Sequence[str]) -> Plan:
    """Draw which classes are taken for which."""
    known = [run for run in runs if run.record.confusion]
    return Plan(
        "confusion",
        "Confusion in task order",
        "Answers at the end of the stream: classes down, what they were taken for across, both in "
        "the order of the tasks, white lines between tasks, in per cent of each class. A "
        "bright diagonal is right; answers that pile up on the right were learned last.",
        [_sketch(confusion.draw, run, _confusion_caption(run.record)) for run in known],
        notes if known else ("No record holds the answers of its last evaluation.",),
    )


def _confusion_caption(record: RunRecord) -> str:
    share = confusion.late_answers(record)
    if share is None:
        return "No class of an earlier task is answered wrongly."
    return f"Of the errors on earlier tasks, {percent(share)} % are classes of the last."


def memory_section(runs: Sequence[Run], notes: Sequence[str]) -> Plan:
    """Draw what the memory holds."""
    keeping = [run for run in runs if memory_contents.keeps_images(run.record)]
    without = _names_of([run for run in runs if run not in keeping])
    return Plan(
        "memory",
        "What the memory holds",
        "Images in memory, stacked in the order of the tasks: colors part tasks, fine lines part "
        "classes.",
        [_sketch(memory_contents.draw, run, _memory_caption(run.record)) for run in keeping],
        [*notes, *(f"{name} keeps no memory." for name in without)],
    )


def _memory_caption(record: RunRecord) -> str:
    held = record.moments[-1].memory
    return f"At the end {sum(held):,} images of {sum(n > 0 for n in held)} classes."


def sphere_section(runs: Sequence[Run], notes: Sequence[str]) -> Plan:
    """Draw features around the directions of their classes."""
    fixed = [run for run in runs if run.record.sphere is not None and run.record.sphere.frames]
    without = _names_of([run for run in runs if run not in fixed])
    return Plan(
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
