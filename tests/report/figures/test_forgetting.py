import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from sterad.report.figures.forgetting import (
    Matrix,
    draw_forgetting,
    forgetting_per_task,
    forgetting_ranges,
)
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
MATRIX = ((0.9, None, None), (0.6, 0.8, None), (0.7, 0.85, 0.95))


def with_matrix(record: RunRecord, matrix: Matrix) -> RunRecord:
    return dataclasses.replace(record, accuracy_matrix=tuple(map(tuple, matrix)))


def test_best_earlier_minus_last_by_hand() -> None:
    forgetting = forgetting_per_task(MATRIX)
    # later tasks improved the second; the third is learned last, so it has no earlier row
    np.testing.assert_allclose(forgetting, [0.2, -0.05, np.nan])
    assert np.isnan(forgetting_per_task([[0.5]])).all()
    assert np.isnan(forgetting_per_task([[0.5], [None]])).all()


def test_range_over_seeds(make_record: Build) -> None:
    record = make_record()
    worse: Matrix = [[0.9, None, None], [0.6, 0.8, None], [0.5, 0.8, 0.95]]
    ranges = forgetting_ranges([with_matrix(record, MATRIX), with_matrix(record, worse)])
    assert list(ranges) == [0, 1]
    assert ranges[0] == pytest.approx((20, 30, 40))
    assert ranges[1] == pytest.approx((-5, -2.5, 0))


def test_a_record_without_rows_has_no_range(make_record: Build) -> None:
    assert forgetting_ranges([with_matrix(make_record(), ())]) == {}


def test_one_bar_per_task_and_method(make_record: Build) -> None:
    record = with_matrix(make_record(), MATRIX)
    axes = draw_forgetting([("a", [record]), ("b", [])]).axes[0]
    assert [bar.get_height() for bar in axes.containers[0]] == pytest.approx([20, -5])
    assert "percentage points" in axes.get_ylabel()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["task 1", "task 2"]


def test_many_tasks_are_drawn_as_lines(make_record: Build) -> None:
    wide = with_matrix(make_record(), [[0.9] * 200, [0.5] * 200])
    wide = dataclasses.replace(wide, evaluations=tuple(map(str, range(200))))
    axes = draw_forgetting([("a", [wide])]).axes[0]
    assert not axes.patches
    assert np.size(axes.lines[0].get_xdata()) == 200
