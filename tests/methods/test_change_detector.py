import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sterad.errors import SteradError
from sterad.methods.base.boundaries import ChangeDetector
from sterad.streams.blurry import half_normal_order
from sterad.streams.tasks import label_order, split_order, task_order

labels_of_batches = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=40)


def reference(batches: list[list[int]], lag: int) -> list[tuple[bool, int, set[int], set[int]]]:
    seen: set[int] = set()
    old: set[int] = set()
    c, task, story = lag, -1, []
    for batch in batches:
        c += 1
        changed = False
        if any(label not in seen for label in batch):
            old = set(seen)
            seen |= set(batch)
            if c >= lag:
                task += 1
                c = 0
                changed = True
        story.append((changed, task, set(seen), old))
    return story


@given(labels_of_batches, st.integers(0, 12))
def test_the_detector_follows_the_rule_exactly(batches: list[list[int]], lag: int) -> None:
    detector, story = ChangeDetector(lag), []
    for batch in batches:
        changed = detector.observe(torch.tensor(batch, dtype=torch.int64))
        story.append((changed, detector.task, set(detector.seen), set(detector.old)))
    assert story == reference(batches, lag)


@given(labels_of_batches, st.integers(0, 40))
def test_a_restored_detector_gives_equal_results(batches: list[list[int]], cut: int) -> None:
    first, second = ChangeDetector(5), ChangeDetector()
    for batch in batches[:cut]:
        first.observe(torch.tensor(batch, dtype=torch.int64))
    second.load_state_dict(first.state_dict())
    for batch in batches[cut:]:
        labels = torch.tensor(batch, dtype=torch.int64)
        assert first.observe(labels) == second.observe(labels)
    assert (first.task, first.seen, first.old) == (second.task, second.seen, second.old)


def test_the_first_batch_begins_task_zero() -> None:
    detector = ChangeDetector()
    assert detector.task == -1
    assert detector.observe(torch.tensor([3, 4]))
    assert (detector.task, detector.seen, detector.old) == (0, frozenset({3, 4}), frozenset[int]())


@pytest.mark.parametrize(("classes", "tasks", "least", "most"), [(10, 5, 5, 6), (100, 10, 17, 22)])
def test_the_published_numbers_of_changes_are_found(
    classes: int, tasks: int, least: int, most: int
) -> None:
    labels = np.repeat(np.arange(classes), 50_000 // classes)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order, _ = task_order(labels, split_order(label_order(classes, seed), tasks), rng)
        stream = labels[half_normal_order(order, 1500.0, rng)].reshape(-1, 10)
        detector = ChangeDetector()
        found = sum(detector.observe(batch) for batch in torch.from_numpy(stream))
        assert found == detector.task + 1
        assert least <= found <= most


def test_a_negative_lag_raises() -> None:
    with pytest.raises(SteradError, match="lag of a change detector is -1"):
        ChangeDetector(-1)
