import numpy as np
import pytest

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.streams import SiBlurry
from sterad.streams.si_blurry import random_parts


def sorted_by_class(classes: int, per_class: int) -> Dataset:
    labels = np.repeat(np.arange(classes), per_class)
    images = np.zeros((len(labels), 1, 1, 1), np.uint8)
    return Dataset.from_arrays(images, labels, images[:classes], np.arange(classes))


def test_sizes_of_tasks_differ_between_seeds_and_no_end_is_announced() -> None:
    data = sorted_by_class(20, 10)
    sizes = {tuple(map(len, SiBlurry(tasks=5).open(data, seed).tasks)) for seed in range(10)}
    assert len(sizes) > 5
    assert all(sum(one) == 20 and min(one) > 0 for one in sizes)  # empty tasks are not scored
    assert SiBlurry(tasks=5).open(data, 0).ends == ()


def test_classes_that_the_tasks_do_not_divide_are_left_out() -> None:
    stream = SiBlurry(tasks=3, label_order=(4, 3, 2, 1, 0)).open(sorted_by_class(5, 10), 0)
    assert sorted(label for task in stream.tasks for label in task) == [2, 3, 4]
    assert stream.samples == 30


def test_the_stated_share_of_blurry_images_moves_and_classes_share_it() -> None:
    data = sorted_by_class(10, 1000)
    for seed in range(5):
        order = tuple(range(10))
        stream = SiBlurry(tasks=5, disjoint=50, blur=40, label_order=order).open(data, seed)
        labels = data.train_labels[stream.order]
        # Disjoint classes stay together; a blurry class reaches far beyond its 1,000 images.
        spread = [np.ptp(np.flatnonzero(labels == label)) for label in range(10)]
        assert max(spread[:5]) < 7000
        assert np.mean(np.array(spread[5:]) > 5000) >= 0.8


def test_only_blurry_classes_leave_their_task() -> None:
    data = sorted_by_class(10, 100)
    stream = SiBlurry(tasks=2, disjoint=100, blur=50).open(data, 3)
    sizes = [100 * len(task) for task in stream.tasks]
    first = data.train_labels[stream.order[: sizes[0]]]
    assert set(first) == set(stream.tasks[0])


def test_impossible_tasks_get_a_sentence() -> None:
    with pytest.raises(SteradError, match="5 classes cannot make 6 tasks: give tasks from 1 to 5"):
        SiBlurry(tasks=6).open(sorted_by_class(5, 2), 0)
    with pytest.raises(SteradError, match=r"^tasks 0 is out of range: give an integer from 1 to"):
        SiBlurry(tasks=0)


def test_random_parts_cover_the_whole() -> None:
    rng = np.random.default_rng(0)
    for total in (0, 1, 7):
        cuts = random_parts(total, 4, rng)
        assert (cuts[0], cuts[-1], len(cuts)) == (0, total, 5)
        assert cuts == sorted(cuts)
