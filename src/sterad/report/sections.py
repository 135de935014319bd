"""The sections of the page, and where the paper's figures stand among them."""

from dataclasses import dataclass
from functools import partial

from sterad.report import method_sections, run_sections
from sterad.report.drawing import Plan, Section, Sketch, chosen, draw_section
from sterad.report.figures import class_proportions, sweep
from sterad.results.grouping import Layout, flatten, words
from sterad.results.record import RunRecord


def sections(layout: Layout) -> tuple[Section, ...]:
    """Draw everything that the records of a layout hold."""
    runs, note = chosen(layout)
    plans = (
        method_sections.accuracy_over_time_section(layout),
        method_sections.cost_section(layout),
        method_sections.time_section(layout),
        method_sections.sweep_section(layout),
        stream_section(layout),
        method_sections.loss_ratio_section(layout),
        method_sections.forgetting_section(layout),
        run_sections.matrix_section(runs, note),
        run_sections.confusion_section(runs, note),
        run_sections.memory_section(runs, note),
        run_sections.sphere_section(runs, note),
    )
    total = sum(len(records) for records in layout.cells.values())
    return tuple(draw_section(plan, total) for plan in plans)


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper, and whether it could be drawn from these runs."""

    number: int
    what: str
    key: str
    """The section that holds it."""
    drawn: bool
    wanted: str
    """What runs it would take."""


def paper_figures(found: tuple[Section, ...]) -> tuple[PaperFigure, ...]:
    """Return the paper's five figures in its order."""
    drawings = {section.key: section.drawings for section in found}
    concentration = any(one.name.startswith(_CONCENTRATION) for one in drawings["sweep"])
    known = (
        ("features around fixed directions", "sphere", "a run of agd-fd or vmf-fd"),
        ("classes along the stream", "stream", "a stream whose classes tell its tasks apart"),
        ("accuracy over the concentration", "sweep", "runs at three variances or more"),
        ("time per method", "seconds", "any run"),
        ("loss of new over old classes", "loss", "a longer run of agd-fd, vmf-fd, scr or er"),
    )
    return tuple(
        PaperFigure(
            number, what, key, concentration if key == "sweep" else bool(drawings[key]), wanted
        )
        for number, (what, key, wanted) in enumerate(known, 1)
    )


_CONCENTRATION = sweep.Sweep(sweep.VARIANCE, "", ()).title


def stream_section(layout: Layout) -> Plan:
    """Draw which classes arrive when."""
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
    return Plan(
        "stream",
        "The stream",
        "Which classes arrive when: the share of each task's classes in successive stretches of "
        "the stream. With clear boundaries one task ends where the next begins; with blurry ones "
        "neighbors overlap, and nothing tells the method that a task is over.",
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
