import dataclasses
from collections.abc import Callable

import numpy as np

from sterad.report.figures import confusion
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def small(record: RunRecord, tasks: tuple[tuple[int, ...], ...]) -> RunRecord:
    stream = dataclasses.replace(record.stream, tasks=tasks, class_names=("a", "b", "c"))
    counts = ((8, 0, 2), (0, 0, 0), (1, 0, 9))
    return dataclasses.replace(record, stream=stream, confusion=counts)


def test_classes_stand_in_the_order_of_their_tasks(make_record: Build) -> None:
    record = small(make_record(), ((2,), (0, 1)))
    assert confusion.task_order(record.stream) == ([2, 0, 1], [1])
    wanted = np.array([[90.0, 10.0, 0.0], [20.0, 80.0, 0.0], [np.nan] * 3])
    np.testing.assert_allclose(confusion.shares(record), wanted)
    # one error on class c, of the first task, and it is the a of the last
    assert confusion.late_answers(record) == 1.0


def test_domains_have_one_order_and_no_late_answers(make_record: Build) -> None:
    record = small(make_record(), ((0, 1, 2), (0, 1, 2)))
    assert confusion.task_order(record.stream) == ([0, 1, 2], [])
    assert confusion.late_answers(record) is None


def test_classes_of_no_task_come_last(make_record: Build) -> None:
    assert confusion.task_order(small(make_record(), ((1,),)).stream) == ([1, 0, 2], [1])


def test_few_classes_have_numbers_and_many_a_picture(make_record: Build) -> None:
    record = make_record()
    texts = [text.get_text() for text in confusion.draw(record).axes[0].texts]
    assert len(texts) == np.count_nonzero(record.confusion)
    assert "0" not in texts
    names = tuple(f"class {c}" for c in range(40))
    tasks = tuple(tuple(range(4 * k, 4 * k + 4)) for k in range(10))
    stream = dataclasses.replace(record.stream, class_names=names, tasks=tasks)
    many = dataclasses.replace(
        record, stream=stream, confusion=tuple(map(tuple, np.eye(40, dtype=int).tolist()))
    )
    figure = confusion.draw(many)
    assert not figure.axes[0].texts
    assert len(figure.axes[0].images) == 1
