import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sterad.report.figures.along_stream import (
    common_boundaries,
    draw_accuracy,
    draw_loss_ratios,
    interpolate_seeds,
    loss_ratios,
)
from sterad.report.style import PALETTE
from sterad.results.record import Moment, RunRecord

Build = Callable[..., RunRecord]


def with_accuracies(record: RunRecord, points: dict[int, float]) -> RunRecord:
    moments = [Moment(s // 10, s, False, True, 1, a, (None,) * 5, ()) for s, a in points.items()]
    return dataclasses.replace(record, moments=tuple(moments))


def test_seeds_are_interpolated_at_all_moments(make_record: Build) -> None:
    one = with_accuracies(make_record(), {10: 0.2, 30: 0.4, 50: 0.8})
    two = with_accuracies(make_record(), {20: 0.5, 40: 0.7, 50: 0.4})
    samples, values = interpolate_seeds([one, two])
    assert samples.tolist() == [20, 30, 40, 50]  # the second seed starts after 10
    np.testing.assert_allclose(values, [[30, 40, 60, 80], [50, 60, 70, 40]])


def test_boundaries_are_drawn_if_all_runs_have_the_same(make_record: Build) -> None:
    clear = make_record()
    assert common_boundaries([clear, make_record(seed=1)]) == (280, 560, 840, 1120)
    other = with_accuracies(clear, {10: 0.5})
    assert common_boundaries([clear, other]) == ()
    assert common_boundaries([make_record(stream="blurry")]) == ()


def test_a_method_keeps_its_color_if_another_has_no_runs(make_record: Build) -> None:
    axes = draw_accuracy([("absent", []), ("agd-fd", [make_record(), make_record(seed=1)])]).axes[0]
    (line,) = [line for line in axes.lines if line.get_label() == "agd-fd"]
    assert line.get_color() == PALETTE[1]
    assert len(axes.collections) == 1  # the band
    assert axes.get_xlabel() == "stream images"
    assert "%" in axes.get_ylabel()


def test_a_single_moment(make_record: Build) -> None:
    axes = draw_accuracy([("agd-fd", [with_accuracies(make_record(), {1400: 0.5})])]).axes[0]
    assert np.asarray(axes.lines[0].get_xydata()).tolist() == [[1400, 50]]
    assert not axes.collections


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
