import dataclasses
from collections.abc import Callable

import numpy as np

from sterad.report.figures.accuracy_over_time import curve, draw, shared_boundaries
from sterad.report.style import PALETTE
from sterad.results.record import Moment, RunRecord

Build = Callable[..., RunRecord]


def at(record: RunRecord, points: dict[int, float]) -> RunRecord:
    moments = [Moment(s // 10, s, False, True, 1, a, (None,) * 5, ()) for s, a in points.items()]
    return dataclasses.replace(record, moments=tuple(moments))


def test_seeds_are_averaged_at_all_their_moments(make_record: Build) -> None:
    one = at(make_record(), {10: 0.2, 30: 0.4, 50: 0.8})
    two = at(make_record(), {20: 0.5, 40: 0.7, 50: 0.4})
    line = curve([one, two])
    assert line.samples.tolist() == [20, 30, 40, 50]  # 10 is before the second seed begins
    np.testing.assert_allclose(line.low, [30, 40, 60, 40])
    np.testing.assert_allclose(line.mean, [40, 50, 65, 60])
    np.testing.assert_allclose(line.high, [50, 60, 70, 80])


def test_boundaries_are_drawn_where_all_agree(make_record: Build) -> None:
    clear = make_record()
    assert shared_boundaries([clear, make_record(seed=1)]) == (280, 560, 840, 1120)
    other = at(clear, {10: 0.5})
    assert shared_boundaries([clear, other]) == ()
    assert shared_boundaries([make_record(stream="blurry")]) == ()


def test_a_method_keeps_its_color_when_another_is_absent(make_record: Build) -> None:
    axes = draw([("absent", []), ("agd-fd", [make_record(), make_record(seed=1)])]).axes[0]
    (line,) = [line for line in axes.lines if line.get_label() == "agd-fd"]
    assert line.get_color() == PALETTE[1]
    assert len(axes.collections) == 1  # the band
    assert axes.get_xlabel() == "images of the stream"
    assert "%" in axes.get_ylabel()


def test_one_moment_only(make_record: Build) -> None:
    axes = draw([("agd-fd", [at(make_record(), {1400: 0.5})])]).axes[0]
    assert np.asarray(axes.lines[0].get_xydata()).tolist() == [[1400, 50]]
    assert not axes.collections
