"""Sections that set methods side by side: a figure per setting, a line, bar or point per method."""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from sterad.report.drawing import Plan, Sketch
from sterad.report.figures import (
    accuracy_over_time,
    cost_accuracy,
    forgetting,
    loss_ratio,
    sweep,
    training_time,
)
from sterad.report.tables import percent
from sterad.results.grouping import Layout
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize

Methods = list[tuple[str, Sequence[RunRecord]]]


def _methods(layout: Layout, column: int) -> Methods:
    return [(label.text, layout.cell(row, column)) for row, label in enumerate(layout.rows)]


def accuracy_over_time_section(layout: Layout) -> Plan:
    """Draw the accuracy on all seen classes as the stream goes by."""
    sketches = []
    for column, label in enumerate(layout.columns):
        methods = _methods(layout, column)
        ends = {name: _mean([r.moments[-1].accuracy for r in rs]) for name, rs in methods if rs}
        caption = f"At the end: {_ranking(ends, '%', best_first=True)}."
        sketches.append(Sketch(partial(accuracy_over_time.draw, methods), label.text, caption))
    return Plan(
        "time",
        "Accuracy over time",
        "Share of right answers on the test images of all classes seen so far, as the stream goes "
        "by. A line is the mean over seeds, its band reaches from the lowest to the highest seed, "
        "and dotted verticals are announced ends of tasks.",
        sketches,
    )


def cost_section(layout: Layout) -> Plan:
    """Draw every cost against the accuracy that it buys."""
    sketches = []
    for column, label in enumerate(layout.columns):
        methods = _methods(layout, column)
        for cost, called in cost_accuracy.COSTS.items():
            points = cost_accuracy.placed(methods, cost)
            if len(points) > 1:
                best = cost_accuracy.front(list(points.values()))
                names = [methods[list(points)[place]][0] for place in best]
                caption = f"On the front, from cheap to dear: {_listed(names)}."
                draw = partial(cost_accuracy.draw, methods, cost)
                sketches.append(Sketch(draw, f"{label.text}: {called}", caption))
    return Plan(
        "cost",
        "Cost against accuracy",
        "What a method costs and what it reaches, means over seeds. The line is the Pareto front: "
        "whoever is not on it is beaten by a method that is no dearer and more accurate.",
        sketches,
        () if sketches else ("No setting has two methods to weigh against each other.",),
    )


def time_section(layout: Layout) -> Plan:
    """Draw how long methods take."""
    sketches = []
    for column, label in enumerate(layout.columns):
        methods = _methods(layout, column)
        means = {n: summarize(r.seconds for r in rs).mean for n, rs in methods if rs}
        quick, slow = (pick(means, key=lambda name: means[name]) for pick in (min, max))
        ratio = means[slow] / max(means[quick], 1e-9)
        caption = f"{slow} takes {ratio:.1f} times as long as {quick}." if len(means) > 1 else ""
        sketches.append(Sketch(partial(training_time.draw, methods), label.text, caption))
    return Plan(
        "seconds",
        "Time per method",
        "The whole run, evaluations included, on the machine and with the threads that the runs "
        "name: bars are means over seeds, whiskers reach from the quickest to the slowest.",
        sketches,
    )


def sweep_section(layout: Layout) -> Plan:
    """Draw the accuracy over every number that was varied."""
    records = [record for _, _, found in layout.groups() for record in found]
    sweeps = sorted(sweep.find_sweeps(records), key=lambda one: one.path != sweep.VARIANCE)
    return Plan(
        "sweep",
        "Sensitivity",
        "Final average accuracy over a number that was varied while everything else stayed. A "
        "line is the mean over seeds, its band reaches from the lowest to the highest seed.",
        [
            Sketch(partial(sweep.draw, one), f"{one.title}: {one.name}", _sweep_caption(one))
            for one in sweeps
        ],
        () if sweeps else (f"No number takes {sweep.FEWEST} values or more.",),
    )


def _sweep_caption(one: sweep.Sweep) -> str:
    tops = {name: max(points, key=lambda point: fmean(point[1])) for name, points in one.lines}
    said = [f"{name} at {x:.3g} ({percent(fmean(top))} %)" for name, (x, top) in tops.items()]
    return f"Highest: {_listed(said)}."


def loss_ratio_section(layout: Layout) -> Plan:
    """Draw how the loss of new classes compares with that of old ones."""
    sketches = []
    for column, label in enumerate(layout.columns):
        methods = _methods(layout, column)
        known = [name for name, records in methods if loss_ratio.ratios(records) is not None]
        if known:
            caption = f"Methods whose loss has a part for every image: {_listed(known)}."
            sketches.append(Sketch(partial(loss_ratio.draw, methods), label.text, caption))
    return Plan(
        "loss",
        "Loss of new and old classes",
        "Training loss of the classes of the task at hand over that of earlier tasks, within the "
        "same batches. Above 1 the new classes pull harder: the higher, the more the old ones are "
        "overrun. Dotted verticals are announced ends of tasks.",
        sketches,
        () if sketches else ("No record holds losses by class at five steps or more.",),
    )


def forgetting_section(layout: Layout) -> Plan:
    """Draw what each task lost."""
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
    return Plan(
        "forgetting",
        "Forgetting",
        "The best accuracy that a task had at an earlier moment, minus the one it ends with. Lower "
        "is better; below zero the task gained from what came later. Bars are means over seeds, "
        "whiskers reach from the lowest to the highest seed.",
        sketches,
        notes,
    )


def _mean(values: Sequence[float]) -> float:
    return summarize(values).mean


def _ranking(values: dict[str, float], unit: str, best_first: bool = False) -> str:
    order = sorted(values.items(), key=lambda pair: pair[1], reverse=best_first)
    shown = [f"{name} {percent(value)} {unit}" for name, value in order[:3]]
    more = len(order) - len(shown)
    return ", ".join(shown) + (f", {more} more" if more > 0 else "")


def _listed(names: Sequence[str], most: int = 6) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])
