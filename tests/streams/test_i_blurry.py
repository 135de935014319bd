import numpy as np
import pytest

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.streams import Clear, IBlurry, SiBlurry, Stream
from sterad.streams.blurry import random_cuts
from sterad.streams.tasks import home_tasks


def labeled(classes: int, per_class: int) -> Dataset:
    labels = np.tile(np.arange(classes), per_class)
    images = np.zeros((len(labels), 1, 1, 1), np.uint8)
    return Dataset.from_arrays(images, labels, images[:classes], np.arange(classes))


def in_task(stream: Stream) -> np.ndarray:
    """Return the images of each class in each of the five equal tasks: (classes, tasks)."""
    return stream.proportions(5).T


@pytest.mark.parametrize(
    ("blur", "home", "others"), [(10, (4570, 4630), (70, 130)), (30, (3750, 3830), (255, 345))]
)
def test_the_counts_of_cifar10_are_those_of_the_published_streams(
    blur: int, home: tuple[int, int], others: tuple[int, int]
) -> None:
    stream = IBlurry(tasks=5, blur=blur).open(labeled(10, 5000), seed=1)
    counts = in_task(stream)
    assert (counts.sum(axis=0) == 10_000).all()
    homes = home_tasks(stream.tasks, 10)
    alone = [label for label in range(10) if counts[label].max() == 5000]
    assert len(alone) == 5
    assert sorted(homes[alone]) == [0, 1, 2, 3, 4]  # one disjoint class in each task
    for label in set(range(10)) - set(alone):
        here = counts[label, homes[label]]
        elsewhere = np.delete(counts[label], homes[label])
        assert home[0] <= here <= home[1]
        assert ((others[0] <= elsewhere) & (elsewhere <= others[1])).all()


def test_all_blurry_classes_of_cifar100_begin_in_the_first_task() -> None:
    stream = IBlurry(tasks=5).open(labeled(100, 500), seed=1)
    counts = in_task(stream)
    assert (counts[:, 0] > 0).sum() == 60
    blurry = counts[counts.max(axis=1) < 500]
    assert len(blurry) == 50
    assert ((blurry.max(axis=1) >= 445) & (blurry.max(axis=1) <= 477)).all()
    assert np.sort(blurry, axis=1)[:, :-1].mean() == pytest.approx(10, abs=0.5)


def test_images_are_shuffled_inside_a_task() -> None:
    stream = IBlurry(tasks=5).open(labeled(10, 1000), seed=0)
    quarters = stream.proportions(20)[:4]
    common = quarters.sum(axis=0) > 500
    assert (quarters[:, common] / quarters[:, common].mean(axis=0)).std() < 0.1


def test_the_tasks_are_those_of_the_clear_stream() -> None:
    data = labeled(10, 50)
    assert IBlurry(tasks=5).open(data, 3).tasks == Clear(tasks=5).open(data, 3).tasks


def test_all_disjoint_is_clear_and_all_blurred_is_uniform() -> None:
    data = labeled(10, 1000)
    assert (np.count_nonzero(in_task(IBlurry(5, disjoint=100).open(data, 0)), axis=1) == 1).all()
    assert (in_task(IBlurry(5, disjoint=0, blur=100).open(data, 0)) > 150).all()


def test_shares_that_do_not_divide_are_spread_evenly() -> None:
    stream = IBlurry(tasks=4, disjoint=50, blur=40).open(labeled(12, 100), seed=0)
    homes = home_tasks(stream.tasks, 12)
    alone = [label for label, row in enumerate(stream.proportions(4).T) if row.max() == 100]
    assert len(alone) <= 6
    assert np.bincount(homes[alone], minlength=4).max() <= 2
    assert stream.ends == ()


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


def test_impossible_tasks_raise() -> None:
    with pytest.raises(SteradError, match="5 classes cannot make 6 tasks: give tasks from 1 to 5"):
        SiBlurry(tasks=6).open(sorted_by_class(5, 2), 0)
    with pytest.raises(SteradError, match=r"^tasks 0 is out of range: give an integer from 1 to"):
        SiBlurry(tasks=0)


def test_random_cuts_start_at_0_and_end_at_the_total() -> None:
    rng = np.random.default_rng(0)
    for total in (0, 1, 7):
        cuts = random_cuts(total, 4, rng)
        assert (cuts[0], cuts[-1], len(cuts)) == (0, total, 5)
        assert cuts == sorted(cuts)
