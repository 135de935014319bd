import numpy as np
import pytest

from sterad.data import Dataset, Digits, Synthetic
from sterad.errors import SteradError
from sterad.streams import Blurry, Boundary, Clear, Iid, LongTail
from sterad.streams.tasks import TaskSplit, label_order, split_order, task_order

TEN = """
2 8 4 9 1 6 7 3 0 5
2 9 6 4 0 3 1 7 8 5
4 1 5 0 7 2 3 6 9 8
5 4 1 2 9 6 7 0 3 8
3 8 4 9 2 6 0 1 5 7
9 5 2 4 7 1 0 8 6 3
8 1 7 0 6 5 2 4 3 9
8 5 0 2 1 9 7 3 6 4
8 6 9 0 2 5 7 1 4 3
8 4 7 2 1 9 3 0 6 5
"""
HUNDRED = """
26 86 2 55 75 93 16 73 54 95
80 84 33 81 93 17 36 82 69 65
83 30 56 24 16 23 2 27 28 13
"""


def rows(table: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, line.split())) for line in table.strip().splitlines()]


def test_ten_classes_come_in_the_published_order_of_each_seed() -> None:
    assert [label_order(10, seed) for seed in range(10)] == rows(TEN)


def test_a_hundred_classes_begin_in_the_published_order_of_each_seed() -> None:
    assert [label_order(100, seed)[:10] for seed in range(3)] == rows(HUNDRED)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_beyond_the_legacy_generator_raises(seed: int) -> None:
    with pytest.raises(SteradError, match=f"the seed {seed}"):
        label_order(10, seed)


@pytest.mark.parametrize("tasks", [0, -1, 5, 13])
def test_unequal_tasks_raise_and_list_the_divisors(tasks: int) -> None:
    with pytest.raises(SteradError, match=f"12 classes cannot make {tasks} .* 1, 2, 3, 4, 6, 12$"):
        split_order(range(12), tasks)


def test_split_takes_an_explicit_order() -> None:
    data = Synthetic(classes=4, per_class=2).load()
    assert TaskSplit(2, label_order=(3, 1, 0, 2)).split(data, 0) == ((3, 1), (0, 2))
    for seed in (0, 1):
        assert TaskSplit(2, label_order="natural").split(data, seed) == ((0, 1), (2, 3))


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 1, 2, 2), (1, 2, 3, 4)])
def test_an_invalid_label_order_raises(order: tuple[int, ...]) -> None:
    data = Synthetic(classes=4, per_class=2).load()
    with pytest.raises(SteradError, match="each class from 0 to 3 once"):
        TaskSplit(2, label_order=order).split(data, 0)


def test_missing_tasks_raise() -> None:
    with pytest.raises(SteradError, match=r"^tasks is not set: give a divisor"):
        TaskSplit().split(Synthetic(per_class=2).load(), 0)


@pytest.mark.parametrize(
    ("train", "test", "part"), [([0, 1, 1], [0, 1, 2], "train"), ([0, 1, 2], [0, 1, 1], "test")]
)
def test_a_task_without_images_raises(train: list[int], test: list[int], part: str) -> None:
    images = np.zeros((3, 8, 8), np.uint8)
    data = Dataset.from_arrays(images, train, images, test, class_names=["a", "b", "c"])
    with pytest.raises(SteradError, match=rf"classes \(2,\) has no {part} images"):
        TaskSplit(3).split(data, 0)


def test_task_order_groups_and_shuffles() -> None:
    labels = np.random.default_rng(0).integers(0, 6, 300)
    tasks = ((4, 1), (0, 5), (2, 3))
    order, ends = task_order(labels, tasks, np.random.default_rng(1))
    assert sorted(order) == list(range(300))
    for task, part in zip(tasks, np.split(order, ends[:-1]), strict=True):
        assert set(labels[part]) == set(task)
        assert (np.diff(part) < 0).mean() > 0.3  # shuffled
    assert ends[-1] == 300


def test_a_task_holds_exactly_its_classes_and_ends_with_a_boundary() -> None:
    data = Digits().load()
    stream = Clear(tasks=5).open(data, seed=3)
    assert stream.tasks == ((5, 4), (1, 2), (9, 6), (7, 0), (3, 8))
    task = 0
    shown: list[int] = []
    for step in range(1, len(stream) + 1):
        shown += stream.order[stream.samples_after(step - 1) : stream.samples_after(step)].tolist()
        if (boundary := stream.boundary(step)) is not None:
            assert boundary == Boundary(task, step)
            wanted = np.isin(data.train_labels, stream.tasks[task])
            assert sorted(shown) == sorted(np.flatnonzero(wanted))
            task, shown = task + 1, []
    assert task == 5


def test_the_last_partial_batch_of_each_task_is_kept() -> None:
    images = np.zeros((38, 8, 8), np.uint8)
    labels = np.repeat([0, 1, 2], [5, 20, 13])
    data = Dataset.from_arrays(images, labels, images, labels)
    stream = Clear(tasks=3, label_order=(2, 0, 1)).open(data, 0)
    assert [len(stream.batch(step)) for step in range(len(stream))] == [10, 3, 5, 10, 10]
    assert stream.boundary_steps == (2, 3, 5)
    assert stream.ends == (13, 18, 38)


def test_the_published_counts_of_batches() -> None:
    data = Synthetic(classes=10, per_class=500, image_size=1).load()
    assert len(Clear(tasks=5).open(data, 0)) == 500


def test_iid_mixes_all_classes_and_announces_no_end() -> None:
    stream = Iid(tasks=5).open(Synthetic(per_class=200).load(), seed=0)
    assert (stream.proportions(10) > 5).all()
    assert stream.ends == stream.boundary_steps == ()


def test_iid_has_one_evaluation_per_task() -> None:
    stream = Iid(tasks=5).open(Synthetic().load(), seed=0)
    assert [e.classes for e in stream.evaluations()] == [(2, 8), (4, 9), (1, 6), (7, 3), (0, 5)]


def test_iid_batches_cross_tasks() -> None:
    stream = Iid(tasks=5, batch_size=7).open(Synthetic(per_class=10).load(), seed=0)
    assert len(stream) == int(np.ceil(100 / 7))


def test_long_tail_equals_its_base_with_imbalance() -> None:
    data = Synthetic(per_class=40, image_size=1).load()
    assert LongTail(tasks=5).open(data, 1).digest == Clear(5, imbalance=100).open(data, 1).digest
    tail = LongTail(tasks=5, base="blurry", scale=9.0, imbalance=5, batch_size=3)
    same = Blurry(tasks=5, scale=9.0, imbalance=5, batch_size=3)
    assert tail.open(data, 1).digest == same.open(data, 1).digest
    assert "long-tail blurry" in tail.open(data, 1).describe()


def test_imbalance_is_the_ratio_of_class_counts() -> None:
    stream = LongTail(tasks=5).open(Synthetic(per_class=200, image_size=1).load(), 0)
    counts = np.sort(np.bincount(stream.dataset.train_labels[stream.order]))
    assert (counts[0], counts[-1]) == (2, 200)


@pytest.mark.parametrize(
    ("base", "message"), [("long-tail", "a long tail itself"), ("bluury", "bluury")]
)
def test_an_invalid_base_raises(base: str, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        LongTail(tasks=5, base=base).open(Synthetic(per_class=2).load(), 0)
