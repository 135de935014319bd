"""Final accuracy over a numeric setting; over the concentration it is the paper's figure 3."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from sterad.report.section import ReportFigure, Section, join_names
from sterad.report.style import (
    add_legend,
    line_color,
    line_style,
    make_figure,
    set_log_axis,
    use_theme,
)
from sterad.report.tables import percent
from sterad.results.grouping import Layout, Settings, find_varying, flatten, format_setting
from sterad.results.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_VALUES = 3
"""Settings with fewer values are not drawn."""
Points = Sequence[tuple[float, Sequence[float]]]
"""Ascending values of the setting, each with the final average accuracy of every seed."""
VARIANCE = "method.variance"
"""Drawn as the concentration, as in the paper."""
CONCENTRATION = "concentration κ² = 1 / variance"


@dataclass(frozen=True)
class Sweep:
    """A numeric setting that varies; runs of one line are equal in all else but the seed."""

    path: str
    name: str
    """The settings of the figure, without those of its lines."""
    lines: Sequence[tuple[str, Points]]
    """Names and points."""

    @property
    def title(self) -> str:
        """The label of the axis."""
        if self.path == VARIANCE:
            return CONCENTRATION
        return self.path.rpartition(".")[2].replace("_", " ")


def sweep_section(layout: Layout) -> Section:
    """Return the section of sweeps, one figure per numeric setting that varies."""
    all_records = [record for _, _, records in layout.groups() for record in records]
    sweeps = sorted(find_sweeps(all_records), key=lambda sweep: sweep.path != VARIANCE)
    return Section(
        "sweep",
        "Sensitivity",
        "Final average accuracy over a numeric setting, all others equal. Lines are means over "
        "seeds, bands range from the lowest to the highest seed.",
        tuple(
            ReportFigure(partial(draw_sweep, s), f"{s.title}: {s.name}", _describe_best(s))
            for s in sweeps
        ),
        () if sweeps else (f"No numeric setting has {MIN_VALUES} or more values.",),
    )


def _describe_best(sweep: Sweep) -> str:
    best = {name: max(points, key=lambda point: fmean(point[1])) for name, points in sweep.lines}
    texts = [f"{name} at {x:.3g} ({percent(fmean(y))} %)" for name, (x, y) in best.items()]
    return f"Highest: {join_names(texts)}."


def find_sweeps(records: Sequence[RunRecord]) -> list[Sweep]:
    """Return all numeric settings with at least `MIN_VALUES` values, and their lines."""
    runs = [(record, flatten(record.config)) for record in records]
    varying = find_varying([run for _, run in runs])
    numeric = [path for path in varying if _is_numeric(path, [run for _, run in runs])]
    return [sweep for path in numeric for sweep in _sweeps_over(path, runs, varying)]


def _is_numeric(path: str, runs: Sequence[Settings]) -> bool:
    values = {run[path] for run in runs if run.get(path) is not None}
    is_numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return is_numeric and len(values) >= MIN_VALUES and (path != VARIANCE or min(values) > 0)


def _sweeps_over(
    path: str, runs: Sequence[tuple[RunRecord, Settings]], varying: Sequence[str]
) -> Iterator[Sweep]:
    others = [other for other in varying if other not in (path, "method.name")]
    of_line = ["method.name", *(other for other in others if other.startswith("method."))]
    of_figure = [other for other in others if other not in of_line]
    figures: dict[str, dict[str, dict[float, list[float]]]] = {}
    for record, run in runs:
        if run.get(path) is not None:
            lines = figures.setdefault(_name(run, of_figure) or "all runs", {})
            x = 1 / run[path] if path == VARIANCE else float(run[path])
            points = lines.setdefault(_name(run, of_line), {})
            points.setdefault(x, []).append(record.final_average_accuracy)
    for figure, lines in figures.items():
        long = [(n, sorted(p.items())) for n, p in sorted(lines.items()) if len(p) >= MIN_VALUES]
        if long:
            yield Sweep(path, figure, long)


def _name(run: Settings, paths: Sequence[str]) -> str:
    return ", ".join(format_setting(path, run[path]) for path in paths if path in run)


@use_theme()
def draw_sweep(sweep: Sweep) -> "Figure":
    """Draw a line per method with a band from the lowest to the highest seed."""
    figure, axes = make_figure()
    for index, (name, points) in enumerate(sweep.lines):
        x = [value for value, _ in points]
        mean, lowest, highest = (
            [100 * reduce(seeds) for _, seeds in points] for reduce in (fmean, min, max)
        )
        axes.fill_between(x, lowest, highest, color=line_color(index), alpha=0.15, linewidth=0)
        axes.plot(x, mean, **line_style(index, markersize=4), label=name)
    set_log_axis(axes, sorted({x for _, points in sweep.lines for x, _ in points}))
    low, high = axes.get_ylim()
    axes.set(ylim=(max(0.0, low), min(102.0, high)))
    axes.set(xlabel=sweep.title, ylabel="final average accuracy (%)")
    axes.grid()
    add_legend(axes)
    return figure
