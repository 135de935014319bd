import numpy as np
import pytest

from sterad.data import Dataset
from sterad.streams import Clear, IBlurry, Stream
from sterad.streams.tasks import home_tasks


def labelled(classes: int, per_class: int) -> Dataset:
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
    stream = IBlurry(tasks=5, blur=blur).open(labelled(10, 5000), seed=1)
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
    stream = IBlurry(tasks=5).open(labelled(100, 500), seed=1)
    counts = in_task(stream)
    assert (counts[:, 0] > 0).sum() == 60
    blurry = counts[counts.max(axis=1) < 500]
    assert len(blurry) == 50
    assert ((blurry.max(axis=1) >= 445) & (blurry.max(axis=1) <= 477)).all()
    assert np.sort(blurry, axis=1)[:, :-1].mean() == pytest.approx(10, abs=0.5)


def test_images_are_shuffled_inside_a_task() -> None:
    stream = IBlurry(tasks=5).open(labelled(10, 1000), seed=0)
    quarters = stream.proportions(20)[:4]
    common = quarters.sum(axis=0) > 500
    assert (quarters[:, common] / quarters[:, common].mean(axis=0)).std() < 0.1


def test_the_tasks_are_those_of_the_clear_stream() -> None:
    data = labelled(10, 50)
    assert IBlurry(tasks=5).open(data, 3).tasks == Clear(tasks=5).open(data, 3).tasks


def test_a_hundred_per_cent_disjoint_is_clear_and_all_blurred_is_uniform() -> None:
    data = labelled(10, 1000)
    assert (np.count_nonzero(in_task(IBlurry(5, disjoint=100).open(data, 0)), axis=1) == 1).all()
    assert (in_task(IBlurry(5, disjoint=0, blur=100).open(data, 0)) > 150).all()


def test_shares_that_do_not_divide_are_as_even_as_can_be() -> None:
    stream = IBlurry(tasks=4, disjoint=50, blur=40).open(labelled(12, 100), seed=0)
    homes = home_tasks(stream.tasks, 12)
    alone = [label for label, row in enumerate(stream.proportions(4).T) if row.max() == 100]
    assert len(alone) <= 6
    assert np.bincount(homes[alone], minlength=4).max() <= 2
    assert stream.ends == ()
