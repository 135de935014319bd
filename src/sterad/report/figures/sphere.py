"""Features around their fixed directions: three spheres in time (the manner of figure 1)."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sterad.errors import SteradError
from sterad.report.style import INK, PALETTE, WIDTH, themed
from sterad.report.wording import shorten
from sterad.results.record import RunRecord, SphereFrame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]
_MOST_POINTS = 150  # per class and sphere: more would only add bytes
# Seen from (1, 1, 1): the three axes stand 120 degrees apart, the first to the lower left.
_RIGHT = np.array([-1.0, 1.0, 0.0]) / np.sqrt(2)
_UP = np.array([-1.0, -1.0, 2.0]) / np.sqrt(6)
_NEAR = np.array([1.0, 1.0, 1.0]) / np.sqrt(3)


def project(points: Points) -> tuple[Points, NDArray[np.bool_]]:
    """Return points (n, 3) of the sphere on the paper (n, 2), and which are on the near side."""
    return points @ np.stack([_RIGHT, _UP], axis=1), points @ _NEAR >= 0


def has_arrived(record: RunRecord, frame: SphereFrame, label: int) -> bool:
    """Say whether the stream had brought a class before the frame, to within a stretch of it."""
    stretches = len(record.stream.proportions)
    past = max(1, int(stretches * frame.step / max(record.stream.steps, 1)))
    return any(stretch[label] for stretch in record.stream.proportions[:past])


def draw(record: RunRecord) -> "Figure":
    """Draw the spheres of a record that has them, side by side from early to late."""
    from matplotlib.figure import Figure

    if record.sphere is None or not record.sphere.frames:
        raise SteradError(
            f"the run {record.id} has no directions to draw: choose one with a sphere"
        )
    picture = record.sphere
    with themed():
        side = 2 * WIDTH / 3
        figure = Figure(figsize=(side * len(picture.frames), side))
        panels = figure.subplots(1, len(picture.frames), squeeze=False)[0]
        figure.subplots_adjust(left=0.005, right=0.995, bottom=0.01, top=0.92, wspace=0.02)
        for axes, frame in zip(panels, picture.frames, strict=True):
            _draw_frame(axes, record, frame, picture.classes)
        return figure


def _draw_frame(
    axes: "Axes", record: RunRecord, frame: SphereFrame, classes: tuple[int, int, int]
) -> None:
    axes.set_aspect("equal")
    axes.set_xlim(-1.22, 1.22)
    axes.set_ylim(-1.22, 1.22)
    axes.set_axis_off()
    axes.set_title(_moment_name(record, frame))
    _draw_wires(axes)
    for axis, (label, color) in enumerate(zip(classes, PALETTE, strict=False)):
        _draw_cloud(axes, frame, label, color)
        name = shorten(record.stream.class_names[label], 12)
        _draw_direction(axes, axis, name, color, has_arrived(record, frame, label))


def _moment_name(record: RunRecord, frame: SphereFrame) -> str:
    samples = next((m.samples for m in record.moments if m.step == frame.step), None)
    return f"after step {frame.step:,}" if samples is None else f"after {samples:,} images"


def _draw_wires(axes: "Axes") -> None:
    turn = np.linspace(0, 2 * np.pi, 73)
    ring = np.stack([np.cos(turn), np.sin(turn), np.zeros_like(turn)], axis=1)
    heights = np.sin(np.radians([-60, -30, 0, 30, 60]))
    angles = np.radians(np.arange(0, 180, 30))
    circles = [ring * np.sqrt(1 - height**2) + [0, 0, height] for height in heights]
    circles += [ring @ [[np.cos(a), np.sin(a), 0], [0, 0, 1], [0, 0, 0]] for a in angles]
    # A row of NaN lifts the pen between circles, so that all of them are two paths.
    flat, near = project(np.concatenate([[*circle, [np.nan] * 3] for circle in circles]))
    for side, alpha in ((near, 0.2), (~near, 0.07)):
        axes.plot(*np.where(side[:, None], flat, np.nan).T, color=INK, linewidth=0.6, alpha=alpha)
    axes.plot(*ring[:, :2].T, color=INK, linewidth=0.8, alpha=0.55)


def _draw_cloud(axes: "Axes", frame: SphereFrame, label: int, color: str) -> None:
    points = np.array(frame.points, float).reshape(-1, 3)[np.array(frame.labels, int) == label]
    points = points[:: 1 + (len(points) - 1) // _MOST_POINTS] if len(points) else points
    flat, near = project(points)
    for side, alpha, size in ((~near, 0.16, 2.2), (near, 0.6, 2.8)):
        axes.plot(*flat[side].T, "o", color=color, alpha=alpha, markersize=size, markeredgewidth=0)


def _draw_direction(axes: "Axes", axis: int, name: str, color: str, arrived: bool) -> None:
    (spot,), _ = project(np.eye(3)[axis : axis + 1])
    axes.plot(
        *spot,
        "s",
        markersize=7,
        markeredgewidth=1.6,
        markeredgecolor=color if not arrived else INK,
        markerfacecolor=color if arrived else "none",
    )
    x, y = ((-0.88, -0.92), (0.88, -0.92), (0.0, 1.1))[axis]
    axes.text(x, y, name, ha="center", va="center", color=color, weight="bold")
