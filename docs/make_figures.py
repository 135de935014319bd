"""Draw the figures of the README and the front page from committed records.

python docs/make_figures.py     # writes docs/figures/overview.svg

The figure is transparent, and its gray ink can be read on light and on dark pages.
"""

import io
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sterad.files import write_atomically
from sterad.report.figures.sphere import draw_spheres
from sterad.report.style import INK, use_theme
from sterad.results.record import RunRecord
from sterad.results.run_directory import read_records

ROOT = Path(__file__).parents[1]
GRAY = "#808890"
COLORS = {"agd-fd": "#0e86d4", "er": "#cc79a7", "finetune": GRAY}
WIDTH_IN, HEIGHT_IN = 10.6, 3.0
CURVE_SHARE = 0.33
"""Share of the width that the accuracy curves take; the spheres have the rest."""


def draw_overview(records: list[RunRecord], stream: str = "blurry") -> Figure:
    """Draw accuracy along a stream of digits, and features of AGD-FD on the sphere."""
    chosen = [record for record in records if record.config["stream"]["name"] == stream]
    spheres = next(r for r in chosen if r.sphere is not None and r.config["seed"] == 0)
    figure = draw_spheres(spheres)
    figure.set_size_inches(WIDTH_IN, HEIGHT_IN)
    width = (1 - CURVE_SHARE) / len(figure.axes)
    for number, panel in enumerate(figure.axes):
        panel.set_position((CURVE_SHARE + number * width, 0.0, width, 0.9))
    with use_theme():
        axes = figure.add_axes((0.05, 0.16, CURVE_SHARE - 0.09, 0.72))
        for name, color in COLORS.items():
            _draw_curve(axes, [r for r in chosen if r.config["method"]["name"] == name], color)
        axes.set(xlabel="images of the stream", ylim=(0, 102), title="accuracy on seen classes, %")
    return figure


def _draw_curve(axes: Axes, records: list[RunRecord], color: str) -> None:
    """Draw the mean over seeds, and a band from the lowest to the highest one."""
    moments = list(zip(*(record.moments for record in records), strict=True))
    samples = [seeds[0].samples for seeds in moments]
    accuracies = [[100 * moment.accuracy for moment in seeds] for seeds in moments]
    means = [fmean(values) for values in accuracies]
    axes.fill_between(
        samples,
        list(map(min, accuracies)),
        list(map(max, accuracies)),
        color=color,
        alpha=0.15,
        lw=0,
    )
    name = records[0].config["method"]["name"]
    axes.plot(samples, means, color=color, lw=2, label=name)
    axes.text(samples[-1], means[-1] + 2.5, name, color=color, ha="right", weight="bold")


def main() -> None:
    """Write the figure."""
    records, _ = read_records(ROOT / "reproduction" / "records" / "digits")
    written = io.StringIO()
    with use_theme():
        draw_overview(records).savefig(
            written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = written.getvalue().replace(INK, GRAY)
    write_atomically(ROOT / "docs" / "figures" / "overview.svg", text)


if __name__ == "__main__":
    main()
