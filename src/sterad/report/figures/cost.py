"""Cost of methods: accuracy against cost with the Pareto front, and the time of a run."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from sterad.report.section import Methods, ReportFigure, Section, join_names, methods_by_setting
from sterad.report.style import (
    INK,
    WIDTH,
    add_legend,
    line_color,
    line_style,
    make_figure,
    set_log_axis,
    shorten,
    use_theme,
)
from sterad.report.tables import UPPER_BOUND
from sterad.results.grouping import Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTS = {
    "pixels_per_batch": "pixels through the network per batch",
    "images_per_batch": "images through the network per batch",
    "seconds": "seconds per run",
}
"""Fields of a record that are costs, with their names."""
_TIME_UNITS = ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def cost_section(layout: Layout) -> Section:
    """Return the section of cost against accuracy, one figure per setting and cost."""
    figures = []
    for setting, methods in methods_by_setting(layout):
        has_pixels = len(mean_costs(methods, "pixels_per_batch"))
        for cost, cost_name in COSTS.items():
            points = mean_costs(methods, cost)
            if cost == "images_per_batch" and len(points) <= has_pixels:
                continue  # it is for methods whose records have no pixels yet
            if len(points) > 1:
                names = [methods[index][0] for index in front_of(methods, points)]
                caption = f"Pareto front, from cheap to expensive: {join_names(names)}."
                if cost == "pixels_per_batch" and (free := _without_pixels(methods)):
                    caption += f" Not drawn, as they pass no pixels: {join_names(free)}."
                draw = partial(draw_cost, methods, cost)
                figures.append(ReportFigure(draw, f"{setting}: {cost_name}", caption))
    return Section(
        "cost",
        "Cost and accuracy",
        "Cost and final accuracy of each method, means over seeds. The line is the Pareto front: "
        "for every method below it, a method on it costs no more and is more accurate. "
        f"{UPPER_BOUND}, which trains offline, is not compared.",
        tuple(figures),
        () if figures else ("No setting has two methods to compare.",),
    )


def pareto_front(points: Mapping[int, tuple[float, float]]) -> list[int]:
    """Return the keys of (cost, gain) that no other point dominates, ordered by cost.

    >>> pareto_front({4: (1.0, 0.5), 5: (2.0, 0.4), 6: (3.0, 0.9), 7: (3.0, 0.7)})
    [4, 6]
    """
    front: list[int] = []
    for key in sorted(points, key=lambda key: (points[key][0], -points[key][1])):
        if not front or points[key][1] > points[front[-1]][1]:
            front.append(key)
    return front


def front_of(methods: Methods, points: Mapping[int, tuple[float, float]]) -> list[int]:
    """Return the Pareto front of methods without the upper bound, which is not compared."""
    return pareto_front(
        {
            index: point
            for index, point in points.items()
            if methods[index][1][0].config["method"]["name"] != UPPER_BOUND
        }
    )


def _without_pixels(methods: Methods) -> list[str]:
    """Return the methods that pass no pixels through a network, such as closed forms on pixels."""
    return [
        f"{name} ({100 * fmean(r.final_average_accuracy for r in records):.1f} %)"
        for name, records in methods
        if records and all(r.cost is not None and r.cost.pixels == 0 for r in records)
    ]


def mean_costs(methods: Methods, cost: str) -> dict[int, tuple[float, float]]:
    """Return mean cost and mean final accuracy in percent, by position of the method.

    Methods without records or without that cost are left out.
    """
    points = {}
    for index, (_, records) in enumerate(methods):
        costs = [getattr(record, cost) for record in records]
        if costs and min(costs) > 0:
            accuracy = fmean(record.final_average_accuracy for record in records)
            points[index] = (fmean(costs), 100 * accuracy)
    return points


@use_theme()
def draw_cost(methods: Methods, cost: str) -> "Figure":
    """Draw one point per method and the Pareto front as a line."""
    points = mean_costs(methods, cost)
    front = [points[index] for index in front_of(methods, points)]
    costs = [x for x, _ in points.values()]
    figure, axes = make_figure()
    if front:
        steps = [*front, (max(costs) * 1.15, front[-1][1])]
        axes.plot(*zip(*steps, strict=True), drawstyle="steps-post", color=INK, alpha=0.4, lw=1)
    for index, (x, y) in points.items():
        style = line_style(index, linestyle="none", markersize=7, label=methods[index][0])
        axes.plot(x, y, **style)
    axes.margins(x=0.08, y=0.12)
    set_log_axis(axes, costs, ticks_at_values=False)
    axes.set(xlabel=COSTS[cost], ylabel="final average accuracy (%)")
    axes.grid()
    add_legend(axes)
    return figure


def time_section(layout: Layout) -> Section:
    """Return the section of the time of runs, one figure per setting."""
    figures = []
    for setting, methods in methods_by_setting(layout):
        means = {name: fmean(r.seconds for r in records) for name, records in methods if records}
        fastest, slowest = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        ratio = means[slowest] / max(means[fastest], 1e-9)
        caption = f"{slowest} takes {ratio:.1f} times as long as {fastest}."
        draw = partial(draw_time, methods)
        figures.append(ReportFigure(draw, setting, caption if len(means) > 1 else ""))
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


@use_theme()
def draw_time(methods: Methods) -> "Figure":
    """Draw one bar per method: mean over seeds, whiskers from the fastest to the slowest."""
    times = {
        index: [record.seconds for record in records]
        for index, (_, records) in enumerate(methods)
        if records
    }
    unit_seconds, unit = choose_time_unit(max(max(seconds) for seconds in times.values()))
    names = [shorten(methods[index][0], 28) for index in times]
    figure, axes = make_figure(height=0.75 + 0.24 * len(times))
    for position, (index, seconds) in enumerate(times.items()):
        _draw_bar(axes, position, line_color(index), [second / unit_seconds for second in seconds])
    axes.set_yticks(range(len(times)), names)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    box, left = axes.get_position(), (0.2 + 0.072 * max(map(len, names))) / WIDTH
    axes.set_position((left, box.y0, box.x1 - left, box.height))
    axes.margins(x=0.14)
    axes.set(xlim=(0, None), xlabel=f"{unit} per run")
    axes.grid(axis="x")
    return figure


def _draw_bar(axes: "Axes", position: int, color: str, times: Sequence[float]) -> None:
    mean, low, high = fmean(times), min(times), max(times)
    axes.barh(position, mean, 0.7, color=color)
    if high > low:
        whiskers = [[mean - low], [high - mean]]
        axes.errorbar(mean, position, xerr=whiskers, fmt="none", ecolor=INK, elinewidth=0.8)
    text, place = f"{mean:,.0f}" if mean >= 100 else f"{mean:.1f}", (high, position)
    axes.annotate(text, place, (5, 0), textcoords="offset points", va="center", size=8)
