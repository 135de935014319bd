"""Draw the figure of the README and the front page.

make demo                                 # the run whose features are drawn
python docs/make_figures.py [RUNS]        # RUNS: runs/demo; writes docs/figures/overview.svg

The curves are those of committed records, which leave out the features. The figure is transparent,
and its gray ink can be read on light and on dark pages.
"""

import io
import sys
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sterad.errors import SteradError
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


def find_spheres(records: list[RunRecord], runs: list[RunRecord]) -> RunRecord:
    """Return one of `runs` with features on the sphere that is also among the records."""
    known = {record.id for record in choose(records)}
    found = [run for run in runs if run.id in known and run.sphere is not None]
    if not found:
        raise SteradError("no run has the features of AGD-FD on digits: run `make demo` first")
    return found[0]


def choose(records: list[RunRecord], stream: str = "blurry") -> list[RunRecord]:
    """Return the records of one stream."""
    return [record for record in records if record.config["stream"]["name"] == stream]


def draw_overview(records: list[RunRecord], spheres: RunRecord) -> Figure:
    """Draw accuracy along a stream of digits, and features of AGD-FD on the sphere."""
    chosen = choose(records)
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
    axes.text(samples[-1], max(means[-3:]) + 2.5, name, color=color, ha="right", weight="bold")


def main(runs: str = "runs/demo") -> None:
    """Write the figure."""
    records, _ = read_records(ROOT / "reproduction" / "records" / "digits")
    spheres = find_spheres(records, read_records(Path(runs))[0])
    written = io.StringIO()
    with use_theme():
        draw_overview(records, spheres).savefig(
            written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = written.getvalue().replace(INK, GRAY)
    write_atomically(ROOT / "docs" / "figures" / "overview.svg", text)


if __name__ == "__main__":
    main(*sys.argv[1:])
