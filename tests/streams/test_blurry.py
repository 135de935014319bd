import math
import time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterad.data import Dataset, Synthetic
from sterad.errors import SteradError
from sterad.streams import Blurry, Clear, Linear
from sterad.streams import blurry as module
from sterad.streams.blurry import half_normal_order, trapezoid_times


def reference(sequence: list[int], scale: float, rng: np.random.Generator) -> list[int]:
    waiting, output = list(sequence), []
    while waiting:
        i = math.floor(abs(rng.normal(0, scale)))
        redraws = 0
        while i >= len(waiting) and redraws < 10:
            i = math.floor(abs(rng.normal(0, scale)))
            redraws += 1
        if redraws == 10:
            i = 0
        output.append(waiting[i])
        del waiting[i]
    return output


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 300),
    st.one_of(st.floats(1e-300, 1e3), st.floats(1, 1e12)),
    st.integers(0, 1000),
)
def test_the_fast_order_equals_the_reference_with_equal_draws(
    length: int, scale: float, seed: int
) -> None:
    sequence = np.random.default_rng(seed).permutation(length)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DRAWS_PER_CALL", 50)
        fast = half_normal_order(sequence, scale, np.random.default_rng(seed))
    assert fast.tolist() == reference(sequence.tolist(), scale, np.random.default_rng(seed))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 500), st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_any_length_and_scale_give_a_permutation(length: int, scale: float) -> None:
    order = half_normal_order(np.arange(length), scale, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(length))
    assert order.dtype == np.int64


def test_the_tenth_redraw_is_ignored_even_if_it_fits() -> None:
    class Draws:
        def standard_normal(self, size: int) -> npt.NDArray[np.float64]:
            return np.array([9.0] * 10 + [2.0] + [9.0] * 9 + [1.0] + [0.0] * 20)

    # Ten draws beyond the end, then a 2 that fits: the first image is output, not the third. Then
    # nine draws beyond it and a 1 that fits as the ninth redraw: the second one left is output.
    order = half_normal_order(np.arange(4), 1.0, Draws())  # type: ignore[arg-type]
    assert order.tolist() == [0, 2, 1, 3]


def test_a_tiny_scale_changes_nothing() -> None:
    order = half_normal_order(np.arange(1000), 1e-6, np.random.default_rng(0))
    assert order.tolist() == list(range(1000))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_an_impossible_scale_raises(scale: float) -> None:
    with pytest.raises(SteradError, match=f"scale {scale} is out of range"):
        Blurry(tasks=5, scale=scale)


@pytest.mark.parametrize(("tasks", "share"), [(5, 0.13), (10, 0.29)])
def test_the_published_statistics_hold(tasks: int, share: float) -> None:
    place = np.arange(50_000)
    shares, moved = [], []
    for seed in range(3):
        order = half_normal_order(place, 1500.0, np.random.default_rng(seed))
        window = 50_000 // tasks
        shares.append((order // window != place // window).mean())
        moved.append(np.abs(order - place).mean())
    assert np.mean(shares) == pytest.approx(share, abs=0.01)
    assert np.mean(moved) == pytest.approx(1600, abs=100)


def test_a_million_samples_take_less_than_two_seconds() -> None:
    start = time.process_time()  # CPU time of this process: tests run in parallel
    half_normal_order(np.arange(1_000_000), 1500.0, np.random.default_rng(0))
    assert time.process_time() - start < 2


def test_tasks_overlap_and_no_end_is_announced() -> None:
    data = Synthetic(per_class=200, image_size=1).load()
    stream = Blurry(tasks=5, scale=60.0).open(data, seed=0)
    assert stream.boundary_steps == ()
    first_task, second_task = stream.tasks[:2]
    stretch = stream.proportions(5)[0]
    assert stretch[list(first_task)].sum() > stretch[list(second_task)].sum() > 0
    assert len(stream) == 200


def test_a_missing_scale_raises() -> None:
    with pytest.raises(SteradError, match="give scale"):
        Blurry(tasks=5).open(Synthetic(per_class=2).load(), 0)


def labeled(per_class: tuple[int, ...]) -> Dataset:
    labels = np.repeat(np.arange(len(per_class)), per_class)
    images = np.zeros((len(labels), 1, 1, 1), np.uint8)
    return Dataset.from_arrays(images, labels, images[: len(per_class)], range(len(per_class)))


def test_linear_shares_are_straight_lines() -> None:
    # Three tasks of 20,000 and an overlap of one half: each transition lasts 10,000.
    order = (0, 1, 2)
    stream = Linear(tasks=3, label_order=order).open(labeled((20_000,) * 3), seed=0)
    shares = stream.proportions(60) / 1000
    middle = np.arange(60) * 1000 + 500
    falls = [np.clip((end + 5000 - middle) / 10_000, 0, 1) for end in (20_000, 40_000)]
    expected = np.stack([falls[0], falls[1] - falls[0], 1 - falls[1]], axis=1)
    assert np.abs(shares - expected).max() < 0.06  # three deviations of 1,000 draws


def test_linear_overlap_is_a_fraction_of_the_smaller_task() -> None:
    stream = Linear(tasks=2, overlap=1.0, label_order=(0, 1)).open(labeled((9000, 1000)), 0)
    first = np.flatnonzero(stream.dataset.train_labels[stream.order] == 1)[0]
    last = np.flatnonzero(stream.dataset.train_labels[stream.order] == 0)[-1]
    assert first == pytest.approx(8550, abs=150)
    assert last == pytest.approx(9450, abs=150)


def test_linear_without_overlap_has_the_task_order_of_clear() -> None:
    data = labeled((30, 20, 10))
    linear, clear = Linear(tasks=3, overlap=0).open(data, 1), Clear(tasks=3).open(data, 1)
    labels = data.train_labels
    assert labels[linear.order].tolist() == labels[clear.order].tolist()
    assert linear.ends == ()


def test_trapezoid_times_have_a_uniform_density() -> None:
    times = trapezoid_times((50_000, 70_000, 100_000), 1.0, np.random.default_rng(0))
    counts, _ = np.histogram(times, bins=20, range=(0, 100_000))
    assert counts == pytest.approx(np.full(20, 5000), abs=250)
    assert times.min() >= 0
    assert times.max() <= 100_000
