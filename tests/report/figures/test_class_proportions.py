import dataclasses
from collections.abc import Callable

import numpy as np
from sterad.report.figures.class_proportions import draw, task_shares, tells_tasks_apart

from sterad.results.record import RunRecord, StreamFacts

Build = Callable[..., RunRecord]
COUNTS = ((40, 10, 50), (0, 30, 10))
STREAM = StreamFacts("blurry", 140, 14, ((2, 0), (1,)), False, ("a", "b", "c"), COUNTS)


def test_shares_by_hand() -> None:
    middles, shares = task_shares(STREAM)
    assert middles.tolist() == [35, 105]
    assert shares.tolist() == [[90, 10], [25, 75]]


def test_short_stretches_of_a_blurry_stream_are_joined() -> None:
    # 7 stretches of 10 images: three make 30, and the seventh is left alone
    counts = ((10, 0, 0),) * 3 + ((0, 10, 0),) * 3 + ((0, 5, 5),)
    stream = dataclasses.replace(STREAM, samples=70, proportions=counts)
    middles, shares = task_shares(stream)
    assert middles.tolist() == [15, 45, 65]
    assert shares.tolist() == [[100, 0], [0, 100], [50, 50]]
    assert len(task_shares(dataclasses.replace(stream, announced=True))[0]) == 7


def test_shares_sum_to_all(make_record: Build) -> None:
    for stream in ("clear", "blurry"):
        _, shares = task_shares(make_record(stream=stream).stream)
        np.testing.assert_allclose(shares.sum(axis=1), 100)


def test_an_empty_stretch_has_no_shares() -> None:
    empty = dataclasses.replace(STREAM, proportions=((0, 0, 0),))
    assert task_shares(empty)[1].tolist() == [[0, 0]]


def test_a_line_per_task_over_the_whole_stream() -> None:
    axes = draw(STREAM).axes[0]
    assert [line.get_label() for line in axes.lines] == ["task 1", "task 2"]
    assert np.asarray(axes.lines[0].get_xydata()).tolist() == [
        [0, 90],
        [35, 90],
        [105, 25],
        [140, 25],
    ]
    assert axes.get_xlim() == (0, 140)


def test_sharp_ends_are_steps(make_record: Build) -> None:
    assert draw(make_record().stream).axes[0].lines[0].get_drawstyle() == "steps-mid"
    assert draw(STREAM).axes[0].lines[0].get_drawstyle() == "default"


def test_shared_classes_do_not_tell_tasks_apart() -> None:
    assert tells_tasks_apart(STREAM)
    assert not tells_tasks_apart(dataclasses.replace(STREAM, tasks=((0, 1), (1, 2))))
    assert not tells_tasks_apart(dataclasses.replace(STREAM, tasks=((0, 1, 2),)))
    assert not tells_tasks_apart(dataclasses.replace(STREAM, proportions=()))
