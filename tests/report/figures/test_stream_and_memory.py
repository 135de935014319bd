import dataclasses
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sterad.data import Dataset
from sterad.experiments.session import facts_of
from sterad.report.figures.stream_and_memory import (
    draw_memory,
    draw_proportions,
    has_disjoint_tasks,
    memory_counts,
    task_ends,
    task_shares,
)
from sterad.results.record import RunRecord, StreamFacts
from sterad.streams import Clear, Stream

Build = Callable[..., RunRecord]
COUNTS = ((40, 10, 50), (0, 30, 10))
STREAM = StreamFacts("blurry", 140, 14, ((2, 0), (1,)), False, ("a", "b", "c"), COUNTS)


def test_shares_by_hand() -> None:
    edges, shares = task_shares(STREAM)
    assert edges.tolist() == [0, 100, 140]
    assert shares.tolist() == [[90, 10], [25, 75]]


def test_short_parts_of_a_blurry_stream_are_joined() -> None:
    # 7 parts of 10 images: three have 30 images together, the seventh remains
    counts = ((10, 0, 0),) * 3 + ((0, 10, 0),) * 3 + ((0, 5, 5),)
    stream = dataclasses.replace(STREAM, samples=70, proportions=counts)
    edges, shares = task_shares(stream)
    assert edges.tolist() == [0, 30, 60, 70]
    assert shares.tolist() == [[100, 0], [0, 100], [50, 50]]
    # The last part has a class of the first task: the announced tasks are not separate.
    assert len(task_shares(dataclasses.replace(stream, announced=True))[0]) == 8


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
        [50, 90],
        [120, 25],
        [140, 25],
    ]
    assert axes.get_xlim() == (0, 140)


def test_clear_boundaries_are_steps(make_record: Build) -> None:
    assert draw_proportions(make_record().stream).axes[0].lines[0].get_drawstyle() == "steps-post"
    assert draw_proportions(STREAM).axes[0].lines[0].get_drawstyle() == "default"


def stream_of(counts: list[int], per_task: int, seed: int, imbalance: float | None) -> Stream:
    """Return a clear stream of classes with these numbers of images."""
    labels = np.repeat(np.arange(len(counts)), counts)
    every = np.arange(len(counts))
    images = np.zeros((len(labels), 1, 1, 1), np.uint8)
    data = Dataset.from_arrays(images, labels, images[: len(every)], every)
    tasks = len(counts) // per_task
    return Clear(tasks=tasks, imbalance=imbalance, batch_size=7).open(data, seed)


@settings(max_examples=40, deadline=None)
@given(
    counts=st.integers(2, 6).flatmap(
        lambda tasks: st.lists(st.integers(1, 300), min_size=2 * tasks, max_size=2 * tasks)
    ),
    seed=st.integers(0, 2**32 - 1),
    imbalance=st.sampled_from([None, 10.0]),
)
def test_boundaries_are_drawn_at_the_exact_image(
    counts: list[int], seed: int, imbalance: float | None
) -> None:
    stream = stream_of(counts, 2, seed, imbalance)
    facts = facts_of(stream)  # counts of equal parts, most of which contain no boundary
    assert task_ends(facts) == stream.ends
    tasks = np.searchsorted(stream.ends, np.arange(stream.samples), side="right")
    for task, line in enumerate(draw_proportions(facts).axes[0].lines):
        x, y = np.asarray(line.get_xydata()).T
        # steps-post: the value at an image is that of the last vertex at or before it
        drawn = y[np.searchsorted(x, np.arange(stream.samples), side="right") - 1]
        np.testing.assert_array_equal(drawn, 100.0 * (tasks == task))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_announced_tasks_that_overlap_are_not_drawn_as_separate(data: st.DataObject) -> None:
    facts = facts_of(stream_of([60, 60, 60, 60], 2, 0, None))
    rows = [list(row) for row in facts.proportions]
    first, last = facts.tasks[0][0], facts.tasks[1][0]
    early = data.draw(st.sampled_from([n for n, row in enumerate(rows[:-60]) if row[first]]))
    late = data.draw(st.sampled_from([n for n, row in enumerate(rows) if row[last] and n > 60]))
    for row, gained, lost in ((rows[early], last, first), (rows[late], first, last)):
        row[gained] += 1  # two images of different tasks change places
        row[lost] -= 1
    mixed = dataclasses.replace(facts, proportions=tuple(map(tuple, rows)))
    assert task_ends(mixed) == ()
    edges, shares = task_shares(mixed)
    assert len(edges) == len(rows) + 1
    assert 0 < shares[early, 1] <= 100


def test_only_announced_ends_are_exact(make_record: Build) -> None:
    facts = make_record().stream
    assert task_ends(facts) == (280, 560, 840, 1120, 1400)
    assert task_ends(dataclasses.replace(facts, announced=False)) == ()


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
