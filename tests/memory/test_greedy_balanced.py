"""GreedyBalanced against a reference that handles one sample at a time, and its properties."""

import io

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sterad.errors import SteradError
from sterad.memory import MEMORIES, GreedyBalanced, Memory
from sterad.streams import Batch

STREAM = st.lists(st.lists(st.integers(0, 5), max_size=15), max_size=8)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fed(memory: GreedyBalanced, batches: list[list[int]]) -> GreedyBalanced:
    """Offer vectors that are the numbers of the samples."""
    for labels in batches:
        number = torch.arange(memory.seen, memory.seen + len(labels))
        memory.update(Batch(number[:, None].float(), torch.tensor(labels, dtype=torch.int64)))
    return memory


def held(memory: Memory) -> list[tuple[int, int]]:
    return [
        (int(x), y)
        for batch in memory.everything()
        for x, y in zip(batch.x[:, 0].tolist(), batch.y.tolist(), strict=True)
    ]


def reference(
    capacity: int, labels: list[int], generator: torch.Generator
) -> list[tuple[int, int]]:
    slots: list[tuple[int, int]] = []
    known: list[int] = []
    for number, label in enumerate(labels):
        share = capacity // max(1, len(known))
        if label in known and sum(y == label for _, y in slots) >= share:
            continue
        if len(slots) < capacity:
            slots.append((number, label))
        else:
            counts = [sum(y == c for _, y in slots) for c in known]
            largest = known[counts.index(max(counts))]
            candidates = [at for at, (_, y) in enumerate(slots) if y == largest]
            at = candidates[int(torch.randint(len(candidates), (1,), generator=generator))]
            slots[at] = (number, label)
        if label not in known:
            known.append(label)
    return slots


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 20), STREAM, st.integers(0, 99))
def test_batch_updates_equal_the_reference_by_sample(
    capacity: int, batches: list[list[int]], seed: int
) -> None:
    memory = fed(GreedyBalanced(capacity, rng(seed)), batches)
    labels = [label for batch in batches for label in batch]
    assert held(memory) == reference(capacity, labels, rng(seed))
    assert memory.seen == len(labels)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 20), STREAM)
def test_capacity_is_a_limit_and_every_class_fills_its_quota(
    capacity: int, batches: list[list[int]]
) -> None:
    memory = fed(GreedyBalanced(capacity, rng()), batches)
    labels = [label for batch in batches for label in batch]
    counts = memory.class_counts(6)
    assert len(memory) == int(counts.sum()) <= capacity
    assume(0 < len(set(labels)) <= capacity)
    share = capacity // len(set(labels))
    for label in set(labels):
        assert counts[label] >= min(labels.count(label), share)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.permutations(range(5)), st.integers(1, 12))
def test_consecutive_classes_are_balanced_within_one(
    capacity: int, order: list[int], size: int
) -> None:
    assume(capacity >= 5)
    memory = GreedyBalanced(capacity, rng())
    for known, label in enumerate(order, start=1):
        stream = [label] * capacity
        fed(memory, [stream[at : at + size] for at in range(0, capacity, size)])
        counts = memory.class_counts(5)[order[:known]]
        assert int(counts.sum()) == capacity
        assert int(counts.max() - counts.min()) <= 1


def test_replaced_samples_are_random_ones_of_the_largest_class() -> None:
    replaced = torch.zeros(8)
    for seed in range(400):
        memory = fed(GreedyBalanced(8, rng(seed)), [[0] * 8, [1]])
        replaced[list(set(range(8)) - {number for number, _ in held(memory)})] += 1
    assert replaced.sum() == 400
    assert 25 < replaced.min() <= replaced.max() < 80  # 50 each, standard deviation 6.6


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), STREAM, st.data())
def test_a_restored_memory_gives_equal_results(
    capacity: int, batches: list[list[int]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(batches)))
    whole = fed(GreedyBalanced(capacity, rng(3)), batches[:cut])
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed = GreedyBalanced(capacity, rng(9))
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for memory in (whole, resumed):
        fed(memory, batches[cut:])
    assert held(whole) == held(resumed)
    assert torch.equal(whole.state_dict()["rng"], resumed.state_dict()["rng"])
    assert whole.sample(3).y.tolist() == resumed.sample(3).y.tolist()


def test_a_class_without_samples_stays_known() -> None:
    memory = fed(GreedyBalanced(2, rng()), [[0, 1, 2]])
    assert memory.class_counts(3).tolist() == [0, 1, 1]
    loaded = GreedyBalanced(2, rng(1))
    loaded.load_state_dict(memory.state_dict())
    assert held(fed(memory, [[0]])) == held(fed(loaded, [[0]]))
    assert memory.class_counts(3).tolist() == [0, 1, 1]


def test_a_foreign_state_raises() -> None:
    memory = fed(GreedyBalanced(4, rng()), [[0, 1, 1]])
    state = memory.state_dict()
    with pytest.raises(SteradError, match=r"lacks known.*GreedyBalanced"):
        memory.load_state_dict({k: v for k, v in state.items() if k != "known"})
    with pytest.raises(SteradError, match="does not hold 2 samples"):
        memory.load_state_dict(state | {"filled": 2})


def test_greedy_balanced_is_registered() -> None:
    assert isinstance(MEMORIES["greedy_balanced"](3, rng()), GreedyBalanced)
