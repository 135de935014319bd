"""Cost of methods: accuracy against cost with the Pareto front, and the time of a run."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sterad.report.section import Methods, ReportFigure, Section, join_names, methods_of
from sterad.report.style import (
    INK,
    WIDTH,
    add_legend,
    line_style,
    make_figure,
    set_log_axis,
    shorten,
    use_theme,
)
from sterad.results.grouping import Layout
from sterad.results.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTS = {
    "seconds": "seconds per run",
    "images_per_batch": "images through the network per batch",
}
"""Fields of a record that are costs, with their names."""
_TIME_UNITS = ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def cost_section(layout: Layout) -> Section:
    """Return the section of cost against accuracy, one figure per setting and cost."""
    figures = []
    for column, label in enumerate(layout.columns):
        methods = methods_of(layout, column)
        for cost, cost_name in COSTS.items():
            points = mean_costs(methods, cost)
            if len(points) > 1:
                front = pareto_front(list(points.values()))
                names = [methods[list(points)[position]][0] for position in front]
                caption = f"Pareto front, from cheap to expensive: {join_names(names)}."
                draw = partial(draw_cost, methods, cost)
                figures.append(ReportFigure(draw, f"{label.text}: {cost_name}", caption))
    return Section(
        "cost",
        "Cost and accuracy",
        "Cost and final accuracy of each method, means over seeds. The line is the Pareto front: "
        "for every method below it, a method on it costs no more and is more accurate.",
        tuple(figures),
        () if figures else ("No setting has two methods to compare.",),
    )


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the positions of (cost, gain) that no other point dominates, ordered by cost.

    >>> pareto_front([(1.0, 0.5), (2.0, 0.4), (3.0, 0.9), (3.0, 0.7)])
    [0, 2]
    """
    front: list[int] = []
    for position in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not front or points[position][1] > points[front[-1]][1]:
            front.append(position)
    return front


def mean_costs(methods: Methods, cost: str) -> dict[int, tuple[float, float]]:
    """Return mean cost and mean final accuracy in percent, by position of the method.

    Methods without records or without that cost are left out.
    """
    points = {}
    for index, (_, records) in enumerate(methods):
        costs = [getattr(record, cost) for record in records]
        if costs and min(costs) > 0:
            accuracy = summarize(record.final_average_accuracy for record in records).mean
            points[index] = (summarize(costs).mean, 100 * accuracy)
    return points


def draw_cost(methods: Methods, cost: str) -> "Figure":
    """Draw one point per method and the Pareto front as a line."""
    points = mean_costs(methods, cost)
    values = list(points.values())
    front = [values[position] for position in pareto_front(values)]
    with use_theme():
        figure, axes = make_figure()
        costs = [x for x, _ in values]
        steps = [*front, (max(costs) * 1.15, front[-1][1])]
        axes.plot(*zip(*steps, strict=True), drawstyle="steps-post", color=INK, alpha=0.4, lw=1)
        for index, (x, y) in points.items():
            style = line_style(index)
            axes.plot(x, y, style.marker, color=style.color, markersize=7, label=methods[index][0])
        axes.margins(x=0.08, y=0.12)
        set_log_axis(axes, costs, ticks_at_values=False)
        axes.set_xlabel(COSTS[cost])
        axes.set_ylabel("final average accuracy (%)")
        axes.grid()
        add_legend(axes)
        return figure


def time_section(layout: Layout) -> Section:
    """Return the section of the time of runs, one figure per setting."""
    figures = []
    for column, label in enumerate(layout.columns):
        methods = methods_of(layout, column)
        means = {n: summarize(r.seconds for r in rs).mean for n, rs in methods if rs}
        fastest, slowest = (choose(means, key=lambda name: means[name]) for choose in (min, max))
        ratio = means[slowest] / max(means[fastest], 1e-9)
        caption = f"{slowest} takes {ratio:.1f} times as long as {fastest}."
        draw = partial(draw_time, methods)
        figures.append(ReportFigure(draw, label.text, caption if len(means) > 1 else ""))
    return Section(
        "seconds",
        "Time per method",
        "Time of the whole run, including evaluations, on the machine and with the threads that "
        "are listed for each run. Bars are means over seeds, whiskers range from the fastest to "
        "the slowest seed.",
        tuple(figures),
    )


def choose_time_unit(seconds: float) -> tuple[float, str]:
    """Return the largest unit that fits at least twice: its length in seconds and its name.

    >>> choose_time_unit(7300.0), choose_time_unit(100.0)
    ((3600.0, 'hours'), (1.0, 'seconds'))
    """
    return next((unit for unit in _TIME_UNITS if seconds >= 2 * unit[0]), _TIME_UNITS[-1])


def draw_time(methods: Methods) -> "Figure":
    """Draw one bar per method: mean over seeds, whiskers from the fastest to the slowest."""
    present = [index for index, (_, records) in enumerate(methods) if records]
    times = {index: [record.seconds for record in methods[index][1]] for index in present}
    unit_seconds, unit = choose_time_unit(max(max(seconds) for seconds in times.values()))
    with use_theme():
        figure, axes = make_figure(height=0.75 + 0.24 * len(present))
        for position, index in enumerate(present):
            _draw_bar(axes, position, index, [seconds / unit_seconds for seconds in times[index]])
        names = [shorten(methods[index][0], 28) for index in present]
        axes.set_yticks(range(len(present)), names)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        _widen_left_margin(axes, max(map(len, names)))
        axes.margins(x=0.14)
        axes.set_xlim(left=0)
        axes.set_xlabel(f"{unit} per run")
        axes.grid(axis="x")
        return figure


def _draw_bar(axes: "Axes", position: int, index: int, times: Sequence[float]) -> None:
    mean = summarize(times).mean
    axes.barh(position, mean, 0.7, color=line_style(index).color)
    if max(times) > min(times):
        whiskers = [[mean - min(times)], [max(times) - mean]]
        axes.errorbar(mean, position, xerr=whiskers, fmt="none", ecolor=INK, elinewidth=0.8)
    axes.annotate(
        f"{mean:,.0f}" if mean >= 100 else f"{mean:.1f}",
        (max(times), position),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        size=8,
    )


def _widen_left_margin(axes: "Axes", characters: int) -> None:
    box = axes.get_position()
    left = (0.2 + 0.072 * characters) / WIDTH
    axes.set_position((left, box.y0, box.x1 - left, box.height))
