"""Cost against accuracy: which methods are worth their price, and the Pareto front they form."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sterad.report.style import INK, legend_above, log_axis, one_panel, strokes, themed
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = {
    "seconds": "seconds of a run",
    "images_per_batch": "images through the network per batch",
}
"""Fields of a record that are costs, and what they are called."""
Methods = Sequence[tuple[str, Sequence[RunRecord]]]


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of (cost, gain) that no other beats in both, from cheap to dear.

    >>> front([(1.0, 0.5), (2.0, 0.4), (3.0, 0.9), (3.0, 0.7)])
    [0, 2]
    """
    kept: list[int] = []
    for place in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not kept or points[place][1] > points[kept[-1]][1]:
            kept.append(place)
    return kept


def placed(methods: Methods, cost: str) -> dict[int, tuple[float, float]]:
    """Return mean cost and mean final accuracy in per cent of each method that has both."""
    found = {}
    for index, (_, records) in enumerate(methods):
        prices = [getattr(record, cost) for record in records]
        if prices and min(prices) > 0:
            gain = summarize(record.final_average_accuracy for record in records).mean
            found[index] = (summarize(prices).mean, 100 * gain)
    return found


def draw(methods: Methods, cost: str) -> "Figure":
    """Draw a point per method and the front as a line."""
    points = placed(methods, cost)
    best = [list(points.values())[place] for place in front(list(points.values()))]
    with themed():
        figure, axes = one_panel()
        prices = [price for price, _ in points.values()]
        right = max(prices) * 1.15
        steps = [*best, (right, best[-1][1])]
        axes.plot(*zip(*steps, strict=True), drawstyle="steps-post", color=INK, alpha=0.4, lw=1)
        for index, (price, gain) in points.items():
            look = strokes(index)
            axes.plot(
                price, gain, look.marker, color=look.color, markersize=7, label=methods[index][0]
            )
        axes.margins(x=0.08, y=0.12)
        log_axis(axes, prices, ticks_at_values=False)
        axes.set_xlabel(COSTS[cost])
        axes.set_ylabel("final average accuracy (%)")
        axes.grid()
        legend_above(axes)
        return figure
