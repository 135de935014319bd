import dataclasses
from collections.abc import Callable

import numpy as np

from sterad.report.figures.stream_and_memory import (
    draw_memory,
    draw_proportions,
    has_disjoint_tasks,
    memory_counts,
    task_shares,
)
from sterad.results.record import RunRecord, StreamFacts

Build = Callable[..., RunRecord]
COUNTS = ((40, 10, 50), (0, 30, 10))
STREAM = StreamFacts("blurry", 140, 14, ((2, 0), (1,)), False, ("a", "b", "c"), COUNTS)


def test_shares_by_hand() -> None:
    middles, shares = task_shares(STREAM)
    assert middles.tolist() == [35, 105]
    assert shares.tolist() == [[90, 10], [25, 75]]


def test_short_parts_of_a_blurry_stream_are_joined() -> None:
    # 7 parts of 10 images: three have 30 images together, the seventh remains
    counts = ((10, 0, 0),) * 3 + ((0, 10, 0),) * 3 + ((0, 5, 5),)
    stream = dataclasses.replace(STREAM, samples=70, proportions=counts)
    middles, shares = task_shares(stream)
    assert middles.tolist() == [15, 45, 65]
    assert shares.tolist() == [[100, 0], [0, 100], [50, 50]]
    assert len(task_shares(dataclasses.replace(stream, announced=True))[0]) == 7


def test_shares_sum_to_100(make_record: Build) -> None:
    for stream in ("clear", "blurry"):
        _, shares = task_shares(make_record(stream=stream).stream)
        np.testing.assert_allclose(shares.sum(axis=1), 100)


def test_shares_of_an_empty_part_are_zero() -> None:
    empty = dataclasses.replace(STREAM, proportions=((0, 0, 0),))
    assert task_shares(empty)[1].tolist() == [[0, 0]]


def test_one_line_per_task_over_the_whole_stream() -> None:
    axes = draw_proportions(STREAM).axes[0]
    assert [line.get_label() for line in axes.lines] == ["task 1", "task 2"]
    assert np.asarray(axes.lines[0].get_xydata()).tolist() == [
        [0, 90],
        [35, 90],
        [105, 25],
        [140, 25],
    ]
    assert axes.get_xlim() == (0, 140)


def test_clear_boundaries_are_steps(make_record: Build) -> None:
    assert draw_proportions(make_record().stream).axes[0].lines[0].get_drawstyle() == "steps-mid"
    assert draw_proportions(STREAM).axes[0].lines[0].get_drawstyle() == "default"


def test_tasks_with_common_classes_are_not_disjoint() -> None:
    assert has_disjoint_tasks(STREAM)
    assert not has_disjoint_tasks(dataclasses.replace(STREAM, tasks=((0, 1), (1, 2))))
    assert not has_disjoint_tasks(dataclasses.replace(STREAM, tasks=((0, 1, 2),)))
    assert not has_disjoint_tasks(dataclasses.replace(STREAM, proportions=()))


def test_memory_counts_start_empty_and_follow_the_moments(make_record: Build) -> None:
    record = make_record()
    samples, counts = memory_counts(record)
    assert samples.tolist() == [0, *(moment.samples for moment in record.moments)]
    assert counts[0].sum() == 0
    assert tuple(counts[-1]) == record.moments[-1].memory


def test_missing_classes_have_zero_images(make_record: Build) -> None:
    record = make_record()
    first = dataclasses.replace(record.moments[0], memory=(3, 4))
    record = dataclasses.replace(record, moments=(first, *record.moments[1:]))
    assert memory_counts(record)[1][1].tolist() == [3, 4, 0, 0, 0, 0, 0, 0, 0, 0]


def test_one_area_per_task_up_to_the_total(make_record: Build) -> None:
    record = make_record()
    axes = draw_memory(record).axes[0]
    assert [area.get_label() for area in axes.collections] == [f"task {k}" for k in range(1, 6)]
    assert np.asarray(axes.lines[-1].get_ydata())[-1] == sum(record.moments[-1].memory)
    assert len(axes.lines) == 10  # one fine line per class


def test_tasks_with_common_classes_are_one_area(make_record: Build) -> None:
    record = make_record()
    stream = dataclasses.replace(record.stream, tasks=(tuple(range(10)),) * 3)
    axes = draw_memory(dataclasses.replace(record, stream=stream)).axes[0]
    assert [area.get_label() for area in axes.collections] == ["all classes"]
