"""Features around their fixed directions at several steps, as in the paper's figure 1."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.report.section import Run, Section, method_names, note_methods_without, run_figures
from sterad.report.style import INK, PALETTE, WIDTH, shorten, use_theme
from sterad.results.record import RunRecord, SphereFrame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]
_MAX_POINTS = 150  # per class and sphere; more only increase the size of the page
# View from (1, 1, 1): the three axes are 120 degrees apart, the first to the lower left.
_RIGHT = np.array([-1.0, 1.0, 0.0]) / np.sqrt(2)
_UP = np.array([-1.0, -1.0, 2.0]) / np.sqrt(6)
_NEAR = np.array([1.0, 1.0, 1.0]) / np.sqrt(3)


def sphere_section(runs: Sequence[Run], notes: Sequence[str]) -> Section:
    """Return the section of features on the sphere, one figure per run that has them."""
    drawn = [run for run in runs if run.record.sphere is not None and run.record.sphere.frames]
    without = method_names([run for run in runs if run not in drawn])
    return Section(
        "sphere",
        "Features around their fixed directions",
        "Features of test images of three classes, of the first, a middle and the last task, in "
        "the space of their fixed directions (squares). A square is hollow before the stream "
        "contains its class; faint points are on the far side of the sphere.",
        run_figures(drawn, draw_spheres, _describe_classes),
        (*notes, *note_methods_without(without, "fixed directions")),
        is_wide=True,
    )


def _describe_classes(record: RunRecord) -> str:
    assert record.sphere is not None
    names = [record.stream.class_names[label] for label in record.sphere.classes]
    return f"Classes {', '.join(names)}, in the order of their tasks."


def project(points: Points) -> tuple[Points, NDArray[np.bool_]]:
    """Return the orthographic projection (n, 2) of points (n, 3), and which are in front."""
    return points @ np.stack([_RIGHT, _UP], axis=1), points @ _NEAR >= 0


def has_appeared(record: RunRecord, frame: SphereFrame, label: int) -> bool:
    """Return whether a class was in the stream before the frame, up to the bins of proportions."""
    bins = len(record.stream.proportions)
    past = max(1, int(bins * frame.step / max(record.stream.steps, 1)))
    return any(counts[label] for counts in record.stream.proportions[:past])


@use_theme()
def draw_spheres(record: RunRecord) -> "Figure":
    """Draw one sphere per frame, from early to late."""
    from matplotlib.figure import Figure

    assert record.sphere is not None
    frames, side = record.sphere.frames, 2 * WIDTH / 3
    figure = Figure(figsize=(side * len(frames), side))
    panels = figure.subplots(1, len(frames), squeeze=False)[0]
    figure.subplots_adjust(left=0.005, right=0.995, bottom=0.01, top=0.92, wspace=0.02)
    samples = {moment.step: moment.samples for moment in reversed(record.moments)}
    for axes, frame in zip(panels, frames, strict=True):
        images = samples.get(frame.step)
        title = f"after step {frame.step:,}" if images is None else f"after {images:,} images"
        axes.set(aspect="equal", xlim=(-1.22, 1.22), ylim=(-1.22, 1.22), title=title)
        axes.set_axis_off()
        _draw_grid(axes)
        for axis, label in enumerate(record.sphere.classes):
            _draw_points(axes, frame, label, PALETTE[axis])
            name = shorten(record.stream.class_names[label], 12)
            _draw_direction(axes, axis, name, has_appeared(record, frame, label))
    return figure


def _draw_grid(axes: "Axes") -> None:
    angle = np.linspace(0, 2 * np.pi, 73)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    heights = np.sin(np.radians([-60, -30, 0, 30, 60]))
    longitudes = np.radians(np.arange(0, 180, 30))
    circles = [ring * np.sqrt(1 - height**2) + [0, 0, height] for height in heights]
    circles += [ring @ [[np.cos(a), np.sin(a), 0], [0, 0, 1], [0, 0, 0]] for a in longitudes]
    # Rows of NaN separate the circles, so that all of them fit in two paths.
    flat, near = project(np.concatenate([[*circle, [np.nan] * 3] for circle in circles]))
    for side, alpha in ((near, 0.2), (~near, 0.07)):
        axes.plot(*np.where(side[:, None], flat, np.nan).T, color=INK, linewidth=0.6, alpha=alpha)
    axes.plot(*ring[:, :2].T, color=INK, linewidth=0.8, alpha=0.55)


def _draw_points(axes: "Axes", frame: SphereFrame, label: int, color: str) -> None:
    points = np.array(frame.points, float).reshape(-1, 3)[np.array(frame.labels, int) == label]
    points = points[:: 1 + (len(points) - 1) // _MAX_POINTS] if len(points) else points
    flat, near = project(points)
    for side, alpha, size in ((~near, 0.16, 2.2), (near, 0.6, 2.8)):
        axes.plot(*flat[side].T, "o", color=color, alpha=alpha, markersize=size, markeredgewidth=0)


def _draw_direction(axes: "Axes", axis: int, name: str, is_filled: bool) -> None:
    color, ((x, y),) = PALETTE[axis], project(np.eye(3)[axis : axis + 1])[0]
    edge, face = (INK, color) if is_filled else (color, "none")
    axes.plot(x, y, "s", ms=7, markeredgewidth=1.6, markeredgecolor=edge, markerfacecolor=face)
    x, y = ((-0.88, -0.92), (0.88, -0.92), (0.0, 1.1))[axis]
    axes.text(x, y, name, ha="center", va="center", color=color, weight="bold")
