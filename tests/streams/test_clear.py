import numpy as np

from sterad.data import Dataset, Digits, Synthetic
from sterad.streams import Batch, Boundary, Clear, Iid


def test_a_task_holds_exactly_its_classes_and_ends_with_a_boundary() -> None:
    data = Digits().load()
    stream = Clear(tasks=5).open(data, seed=3)
    assert stream.tasks == ((5, 4), (1, 2), (9, 6), (7, 0), (3, 8))
    task = 0
    shown: list[int] = []
    for step, event in stream.events():
        if isinstance(event, Boundary):
            assert (event.task, event.step) == (task, step)
            wanted = np.isin(data.train_labels, stream.tasks[task])
            assert sorted(shown) == sorted(np.flatnonzero(wanted))
            task, shown = task + 1, []
        else:
            shown += stream.order[
                stream.samples_after(step - 1) : stream.samples_after(step)
            ].tolist()
    assert task == 5


def test_the_last_partial_batch_of_each_task_is_kept() -> None:
    images = np.zeros((38, 8, 8), np.uint8)
    labels = np.repeat([0, 1, 2], [5, 20, 13])
    data = Dataset.from_arrays(images, labels, images, labels)
    stream = Clear(tasks=3, label_order=(2, 0, 1)).open(data, 0)
    sizes = [len(event) if isinstance(event, Batch) else "end" for _, event in stream.events()]
    assert sizes == [10, 3, "end", 5, "end", 10, 10, "end"]
    assert len(stream) == 5
    assert stream.ends == (13, 18, 38)


def test_the_published_counts_of_batches() -> None:
    data = Synthetic(classes=10, per_class=500, image_size=1).load()
    assert len(Clear(tasks=5).open(data, 0)) == 500


def test_iid_mixes_all_classes_and_announces_no_end() -> None:
    stream = Iid(tasks=5).open(Synthetic(per_class=200).load(), seed=0)
    assert (stream.proportions(10) > 5).all()
    assert stream.ends == ()
    assert not any(isinstance(event, Boundary) for _, event in stream.events())


def test_iid_has_one_evaluation_per_task() -> None:
    stream = Iid(tasks=5).open(Synthetic().load(), seed=0)
    assert [e.classes for e in stream.evaluations()] == [(2, 8), (4, 9), (1, 6), (7, 3), (0, 5)]


def test_iid_batches_cross_tasks() -> None:
    stream = Iid(tasks=5, batch_size=7).open(Synthetic(per_class=10).load(), seed=0)
    assert len(stream) == int(np.ceil(100 / 7))
