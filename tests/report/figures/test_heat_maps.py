import dataclasses
from collections.abc import Callable

import numpy as np

from sterad.report.figures.heat_maps import (
    confusion_percentages,
    draw_accuracy_matrix,
    draw_confusion,
    last_task_errors,
    row_moments,
    task_order,
)
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_cells_contain_their_accuracies(make_record: Build) -> None:
    record = make_record()
    axes = draw_accuracy_matrix(record).axes[0]
    texts = {
        (int(text.get_position()[1]), int(text.get_position()[0])): text.get_text()
        for text in axes.texts
    }
    expected = {
        (row, column): f"{100 * cell:.1f}"
        for row, cells in enumerate(record.accuracy_matrix)
        for column, cell in enumerate(cells)
        if cell is not None
    }
    assert texts == expected
    assert len(expected) == 15  # a triangle: later tasks are blank
    assert [t.get_text() for t in axes.get_yticklabels()] == ["280", "560", "840", "1,120", "1,400"]
    assert [t.get_text() for t in axes.get_xticklabels()] == [f"task {k}" for k in range(1, 6)]


def test_every_moment_is_a_row_without_announced_ends(make_record: Build) -> None:
    record = make_record(stream="blurry")
    assert row_moments(record) == record.moments
    assert len(draw_accuracy_matrix(record).axes[0].get_yticklabels()) == 10


def test_rows_without_moments_are_numbered(make_record: Build) -> None:
    record = make_record()
    record = dataclasses.replace(record, accuracy_matrix=record.accuracy_matrix[:3])
    axes = draw_accuracy_matrix(record).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1", "2", "3"]


def test_a_large_matrix_has_a_color_bar_instead_of_numbers(make_record: Build) -> None:
    record = dataclasses.replace(
        make_record(),
        evaluations=tuple(f"task {k}" for k in range(100)),
        accuracy_matrix=((0.5,) * 99 + (None,),) * 100,
    )
    figure = draw_accuracy_matrix(record)
    assert len(figure.axes) == 2
    assert not figure.axes[0].texts
    assert figure.axes[1].get_ylabel() == "accuracy (%)"


def test_an_empty_row_is_drawn(make_record: Build) -> None:
    record = dataclasses.replace(make_record(), accuracy_matrix=((None,) * 5,))
    assert not draw_accuracy_matrix(record).axes[0].texts


def with_three_classes(record: RunRecord, tasks: tuple[tuple[int, ...], ...]) -> RunRecord:
    stream = dataclasses.replace(record.stream, tasks=tasks, class_names=("a", "b", "c"))
    counts = ((8, 0, 2), (0, 0, 0), (1, 0, 9))
    return dataclasses.replace(record, stream=stream, confusion=counts)


def test_classes_are_in_task_order(make_record: Build) -> None:
    record = with_three_classes(make_record(), ((2,), (0, 1)))
    assert task_order(record.stream) == ([2, 0, 1], [1])
    expected = np.array([[90.0, 10.0, 0.0], [20.0, 80.0, 0.0], [np.nan] * 3])
    np.testing.assert_allclose(confusion_percentages(record), expected)
    # the only error on class c of the first task is class a of the last task
    assert last_task_errors(record) == 1.0


def test_domains_have_no_last_task(make_record: Build) -> None:
    record = with_three_classes(make_record(), ((0, 1, 2), (0, 1, 2)))
    assert task_order(record.stream) == ([0, 1, 2], [])
    assert last_task_errors(record) is None


def test_classes_of_no_task_come_last(make_record: Build) -> None:
    assert task_order(with_three_classes(make_record(), ((1,),)).stream) == ([1, 0, 2], [1])


def test_confusion_has_numbers_for_few_classes_and_an_image_for_many(make_record: Build) -> None:
    record = make_record()
    texts = [text.get_text() for text in draw_confusion(record).axes[0].texts]
    assert len(texts) == np.count_nonzero(record.confusion)
    assert "0" not in texts
    names = tuple(f"class {c}" for c in range(40))
    tasks = tuple(tuple(range(4 * k, 4 * k + 4)) for k in range(10))
    stream = dataclasses.replace(record.stream, class_names=names, tasks=tasks)
    many = dataclasses.replace(
        record, stream=stream, confusion=tuple(map(tuple, np.eye(40, dtype=int).tolist()))
    )
    figure = draw_confusion(many)
    assert not figure.axes[0].texts
    assert len(figure.axes[0].images) == 1
