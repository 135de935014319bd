import dataclasses
from collections.abc import Callable

import numpy as np

from sterad.report.figures.accuracy_over_time import (
    average_seeds,
    common_boundaries,
    draw_accuracy,
)
from sterad.report.style import PALETTE
from sterad.results.record import Moment, RunRecord

Build = Callable[..., RunRecord]


def with_accuracies(record: RunRecord, points: dict[int, float]) -> RunRecord:
    moments = [Moment(s // 10, s, False, True, 1, a, (None,) * 5, ()) for s, a in points.items()]
    return dataclasses.replace(record, moments=tuple(moments))


def test_seeds_are_averaged_at_all_moments(make_record: Build) -> None:
    one = with_accuracies(make_record(), {10: 0.2, 30: 0.4, 50: 0.8})
    two = with_accuracies(make_record(), {20: 0.5, 40: 0.7, 50: 0.4})
    curve = average_seeds([one, two])
    assert curve.samples.tolist() == [20, 30, 40, 50]  # the second seed starts after 10
    np.testing.assert_allclose(curve.low, [30, 40, 60, 40])
    np.testing.assert_allclose(curve.mean, [40, 50, 65, 60])
    np.testing.assert_allclose(curve.high, [50, 60, 70, 80])


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
