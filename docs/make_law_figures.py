"""Draw a sample of each law on the sphere of three dimensions, for docs/laws.

python docs/make_law_figures.py

The pictures are transparent, and their colors can be seen on light and on dark pages.
"""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

import sterad.sphere as sphere
from sterad.files import write_atomically

FOLDER = Path(__file__).parent / "laws"
SHOWN = 450
"""Points in a picture."""
VIEW = torch.nn.functional.normalize(torch.tensor([1.0, -0.55, 0.5], dtype=torch.float64), dim=0)
"""The direction from which the sphere is seen."""
MEAN = torch.nn.functional.normalize(torch.tensor([0.72, 0.12, 0.62], dtype=torch.float64), dim=0)
"""The mean direction of all laws."""
NEAR, GRID, ARROW = "#2a86a8", "#80889050", "#d1552c"
FAR = f"{NEAR}50"
"""The color of points on the far side: the other one, with less opacity."""


def screen_axes() -> tuple[Tensor, Tensor]:
    """Return the directions to the right and upwards on the picture."""
    right = torch.linalg.cross(torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64), VIEW)
    right = torch.nn.functional.normalize(right, dim=0)
    return right, torch.linalg.cross(VIEW, right)


def project(points: Tensor) -> tuple[Any, Any, Any]:
    """Return coordinates on the picture, and the height towards the viewer: (n,) each."""
    right, up = screen_axes()
    return tuple((points @ axis).numpy() for axis in (right, up, VIEW))  # type: ignore[return-value]


def draw_grid(axes: Any) -> None:
    """Draw the outline and the visible halves of meridians and parallels."""
    turn = torch.linspace(0, 2 * torch.pi, 181, dtype=torch.float64)
    axes.plot(turn.cos().numpy(), turn.sin().numpy(), color="#9aa3a8", lw=0.9)
    circles = []
    for height in (-0.5, 0.0, 0.5):
        radius = (1 - height**2) ** 0.5
        circles.append([radius * turn.cos(), radius * turn.sin(), height + 0 * turn])
    for angle in torch.arange(0, 3) * torch.pi / 3:
        circles.append([turn.cos() * angle.cos(), turn.cos() * angle.sin(), turn.sin()])
    for circle in circles:
        x, y, depth = project(torch.stack(circle, 1))
        hidden = depth < 0
        axes.plot(np.where(hidden, np.nan, x), np.where(hidden, np.nan, y), color=GRID, lw=0.6)


def draw_law(law: Any, direction: Tensor | None, is_axis: bool = False) -> str:
    """Return the picture of a sample as SVG; an arrow shows the mean direction or axis."""
    points = law.sample((SHOWN,), generator=torch.Generator().manual_seed(7))
    figure, axes = plt.subplots(figsize=(3.2, 3.2))
    draw_grid(axes)
    x, y, depth = project(points)
    for shown, color, layer in ((depth < 0, FAR, 2), (depth >= 0, NEAR, 3)):
        axes.scatter(x[shown], y[shown], s=5, color=color, linewidths=0, zorder=layer)
    if direction is not None:
        for sign in (1, -1) if is_axis else (1,):
            (x1,), (y1,), (z1,) = project(sign * direction.unsqueeze(0))
            style = {"arrowstyle": "-|>", "color": ARROW, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
            axes.annotate(
                "", (1.45 * x1, 1.45 * y1), (x1, y1), arrowprops=style, zorder=4 if z1 > 0 else 1
            )
    axes.set(xlim=(-1.28, 1.28), ylim=(-1.28, 1.28), aspect="equal")
    axes.axis("off")
    text = StringIO()
    with plt.rc_context({"svg.hashsalt": "sterad"}):
        options: Any = {"bbox_inches": "tight", "transparent": True}
        figure.savefig(text, format="svg", metadata={"Date": None}, **options)
    plt.close(figure)
    # A hundredth of a point is enough, and makes the files smaller.
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", text.getvalue())


def build_laws() -> dict[str, tuple[Any, Tensor | None, bool]]:
    """Return, by page, a law, the direction of its arrow, and whether that is an axis."""
    spread = torch.diag(torch.tensor([0.02, 0.9, 0.12], dtype=torch.float64))
    general = sphere.GeneralAngularGaussian(0.8 * MEAN, covariance_matrix=spread)
    ellipse = torch.diag(torch.tensor([8.0, 1.0], dtype=torch.float64))
    elliptic = sphere.EllipticallySymmetricAngularGaussian.from_tangent(3.0 * MEAN, ellipse)
    return {
        "von-mises-fisher": (sphere.VonMisesFisher(MEAN, 12.0), MEAN, False),
        "angular-gaussian": (sphere.AngularGaussian(MEAN, 3.0), MEAN, False),
        "power-spherical": (sphere.PowerSpherical(MEAN, 12.0), MEAN, False),
        "spherical-cauchy": (sphere.SphericalCauchy(MEAN, 12.0), MEAN, False),
        "projected-student-t": (sphere.ProjectedStudentT(MEAN, 3.0, 1.5), MEAN, False),
        "uniform": (sphere.Uniform(3, dtype=torch.float64), None, False),
        "general-angular-gaussian": (general, MEAN, False),
        "watson": (sphere.Watson(MEAN, 10.0), MEAN, True),
        "watson-girdle": (sphere.Watson(MEAN, -10.0), MEAN, True),
        "angular-central-gaussian": (sphere.AngularCentralGaussian(30 * spread), None, False),
        "elliptically-symmetric-angular-gaussian": (elliptic, MEAN, False),
    }


def main() -> None:
    """Write all pictures."""
    for name, (law, direction, is_axis) in build_laws().items():
        path = FOLDER / f"{name}.svg"
        write_atomically(path, draw_law(law, direction, is_axis).encode())
        print(f"{path.name}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
