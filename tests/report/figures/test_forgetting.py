import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from sterad.report.figures.forgetting import Matrix, draw, forgotten, per_task
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
MATRIX = ((0.9, None, None), (0.6, 0.8, None), (0.7, 0.85, 0.95))


def with_matrix(record: RunRecord, matrix: Matrix) -> RunRecord:
    return dataclasses.replace(record, accuracy_matrix=tuple(map(tuple, matrix)))


def test_best_before_minus_last_by_hand() -> None:
    lost = forgotten(MATRIX)
    assert lost[0] == pytest.approx(0.2)
    assert lost[1] == pytest.approx(-0.05)  # it gained from what came later
    assert lost[2] is None  # learned last: there is no earlier row
    assert forgotten(()) == ()
    assert forgotten([[0.5]]) == (None,)
    assert forgotten([[0.5], [None]]) == (None,)


def test_spread_over_seeds(make_record: Build) -> None:
    record = make_record()
    worse: Matrix = [[0.9, None, None], [0.6, 0.8, None], [0.5, 0.8, 0.95]]
    found = per_task([with_matrix(record, MATRIX), with_matrix(record, worse)])
    assert list(found) == [0, 1]
    assert found[0] == pytest.approx((20, 30, 40))
    assert found[1] == pytest.approx((-5, -2.5, 0))


def test_a_bar_per_task_and_method(make_record: Build) -> None:
    record = with_matrix(make_record(), MATRIX)
    axes = draw([("a", [record]), ("b", [])]).axes[0]
    assert [bar.get_height() for bar in axes.containers[0]] == pytest.approx([20, -5])
    assert "percentage points" in axes.get_ylabel()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["task 1", "task 2"]


def test_many_tasks_are_lines(make_record: Build) -> None:
    wide = with_matrix(make_record(), [[0.9] * 200, [0.5] * 200])
    wide = dataclasses.replace(wide, evaluations=tuple(map(str, range(200))))
    axes = draw([("a", [wide])]).axes[0]
    assert not axes.patches
    assert np.size(axes.lines[0].get_xdata()) == 200
