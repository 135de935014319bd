import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sterad.report.figures.loss_ratio import draw_loss_ratios, loss_ratios
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_ratios_are_geometric_means(make_record: Build) -> None:
    steps = range(1, 9)
    seeds = [
        dataclasses.replace(make_record(), losses=tuple((k, new, 1.0) for k in steps))
        for new in (4.0, 1.0)
    ]
    ratios = loss_ratios(seeds)
    assert ratios is not None
    np.testing.assert_array_equal(ratios[0], list(steps))
    np.testing.assert_allclose(ratios[1], 2.0)  # √(4 · 1), also at both ends


def test_neighboring_steps_are_averaged(make_record: Build) -> None:
    losses = tuple((k, np.e if k == 5 else 1.0, 1.0) for k in range(1, 10))
    ratios = loss_ratios([dataclasses.replace(make_record(), losses=losses)])
    assert ratios is not None
    assert np.log(ratios[1]) == pytest.approx([0, 0, 0.2, 0.2, 0.2, 0.2, 0.2, 0, 0])


def test_no_line_with_too_few_losses(make_record: Build) -> None:
    short = dataclasses.replace(make_record(), losses=((1, 1.0, 1.0), (2, 0.0, 1.0)))
    assert loss_ratios([short]) is None
    assert loss_ratios([]) is None
    axes = draw_loss_ratios([("agd-fd", [make_record()]), ("er", [short])]).axes[0]
    assert axes.get_legend_handles_labels()[1] == ["agd-fd"]


@pytest.mark.parametrize("high", [1.3, 5.0, 900.0])
def test_tick_labels_are_plain_numbers_inside_the_figure(make_record: Build, high: float) -> None:
    losses = tuple((k, high if k % 20 < 10 else 0.9, 1.0) for k in range(1, 200))
    figure = draw_loss_ratios([("er", [dataclasses.replace(make_record(), losses=losses)])])
    FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    axes = figure.axes[0]
    labels = [label for label in axes.get_yticklabels() if label.get_text()]
    low, top = axes.get_ylim()
    labels = [label for label in labels if low <= label.get_position()[1] <= top]
    assert labels
    for label in labels:
        float(label.get_text().replace(",", ""))
        assert label.get_window_extent().x0 >= 0
    assert axes.yaxis.label.get_window_extent().x0 >= 0
