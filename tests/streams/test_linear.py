import numpy as np
import pytest

from sterad.data import Dataset
from sterad.streams import Clear, Linear
from sterad.streams.linear import trapezoid_times


def labeled(per_class: tuple[int, ...]) -> Dataset:
    labels = np.repeat(np.arange(len(per_class)), per_class)
    images = np.zeros((len(labels), 1, 1, 1), np.uint8)
    return Dataset.from_arrays(images, labels, images[: len(per_class)], range(len(per_class)))


def test_shares_follow_the_straight_lines() -> None:
    # Three tasks of 20,000 and an overlap of one half: each transition lasts 10,000.
    order = (0, 1, 2)
    stream = Linear(tasks=3, label_order=order).open(labeled((20_000,) * 3), seed=0)
    shares = stream.proportions(60) / 1000
    middle = np.arange(60) * 1000 + 500
    falls = [np.clip((end + 5000 - middle) / 10_000, 0, 1) for end in (20_000, 40_000)]
    expected = np.stack([falls[0], falls[1] - falls[0], 1 - falls[1]], axis=1)
    assert np.abs(shares - expected).max() < 0.06  # three deviations of 1,000 draws


def test_unequal_tasks_mix_over_a_share_of_the_smaller_one() -> None:
    stream = Linear(tasks=2, overlap=1.0, label_order=(0, 1)).open(labeled((9000, 1000)), 0)
    first = np.flatnonzero(stream.dataset.train_labels[stream.order] == 1)[0]
    last = np.flatnonzero(stream.dataset.train_labels[stream.order] == 0)[-1]
    assert first == pytest.approx(8550, abs=150)
    assert last == pytest.approx(9450, abs=150)


def test_no_overlap_is_the_clear_order_of_tasks_without_its_ends() -> None:
    data = labeled((30, 20, 10))
    linear, clear = Linear(tasks=3, overlap=0).open(data, 1), Clear(tasks=3).open(data, 1)
    labels = data.train_labels
    assert labels[linear.order].tolist() == labels[clear.order].tolist()
    assert linear.ends == ()


def test_times_add_up_to_an_even_rate() -> None:
    times = trapezoid_times((50_000, 70_000, 100_000), 1.0, np.random.default_rng(0))
    per_stretch, _ = np.histogram(times, bins=20, range=(0, 100_000))
    assert per_stretch == pytest.approx(np.full(20, 5000), abs=250)
    assert times.min() >= 0
    assert times.max() <= 100_000
