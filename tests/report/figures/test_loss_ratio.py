import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sterad.report.figures.loss_ratio import draw, ratios
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_the_mean_of_ratios_is_geometric(make_record: Build) -> None:
    steps = range(1, 9)
    seeds = [
        dataclasses.replace(make_record(), losses=tuple((k, new, 1.0) for k in steps))
        for new in (4.0, 1.0)
    ]
    found = ratios(seeds)
    assert found is not None
    np.testing.assert_array_equal(found[0], list(steps))
    np.testing.assert_allclose(found[1], 2.0)  # √(4 · 1), also at both ends


def test_nearby_steps_are_smoothed(make_record: Build) -> None:
    losses = tuple((k, np.e if k == 5 else 1.0, 1.0) for k in range(1, 10))
    found = ratios([dataclasses.replace(make_record(), losses=losses)])
    assert found is not None
    assert np.log(found[1]) == pytest.approx([0, 0, 0.2, 0.2, 0.2, 0.2, 0.2, 0, 0])


def test_too_few_losses_make_no_line(make_record: Build) -> None:
    short = dataclasses.replace(make_record(), losses=((1, 1.0, 1.0), (2, 0.0, 1.0)))
    assert ratios([short]) is None
    assert ratios([]) is None
    axes = draw([("agd-fd", [make_record()]), ("er", [short])]).axes[0]
    assert axes.get_legend_handles_labels()[1] == ["agd-fd"]


@pytest.mark.parametrize("high", [1.3, 5.0, 900.0])
def test_every_number_at_the_axis_is_plain_and_on_the_page(make_record: Build, high: float) -> None:
    losses = tuple((k, high if k % 20 < 10 else 0.9, 1.0) for k in range(1, 200))
    figure = draw([("er", [dataclasses.replace(make_record(), losses=losses)])])
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    axes = figure.axes[0]
    shown = [label for label in axes.get_yticklabels() if label.get_text()]
    low, top = axes.get_ylim()
    shown = [label for label in shown if low <= label.get_position()[1] <= top]
    assert shown
    for label in shown:
        float(label.get_text().replace(",", ""))
        assert label.get_window_extent().x0 >= 0
    assert axes.yaxis.label.get_window_extent().x0 >= 0
