"""ClassBalanced and Ring against references that handle one sample at a time."""

import io
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sterad.errors import SteradError
from sterad.memory import (
    ClassBalanced,
    Everything,
    GreedyBalanced,
    Memory,
    Reservoir,
    Ring,
    SlotMemory,
)
from sterad.memory.checks import check_size, copy_prototype
from sterad.streams import Batch

STREAM = st.lists(st.lists(st.integers(0, 5), max_size=15), max_size=8)
POLICIES = [ClassBalanced, Ring]


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fed(memory: SlotMemory, batches: list[list[int]]) -> SlotMemory:
    """Offer vectors that are the numbers of the samples."""
    for labels in batches:
        number = torch.arange(memory.seen, memory.seen + len(labels))
        memory.update(Batch(number[:, None].float(), torch.tensor(labels, dtype=torch.int64)))
    return memory


def held(memory: Memory) -> set[tuple[int, int]]:
    return {
        (int(x), y)
        for batch in memory.everything()
        for x, y in zip(batch.x[:, 0].tolist(), batch.y.tolist(), strict=True)
    }


def replace_one(
    lists: dict[int, list[int]], victim: int, at: int, changed: dict[int, int], now: int
) -> None:
    """Remove a sample of a class; the newest one takes its position."""
    lists[victim][at] = lists[victim][-1]
    lists[victim].pop()
    changed[victim] = now


def class_balanced_reference(
    capacity: int, labels: list[int], generator: torch.Generator
) -> set[tuple[int, int]]:
    lists: dict[int, list[int]] = {}
    were_largest: set[int] = set()
    changed: dict[int, int] = {}
    offered: Counter[int] = Counter()
    for number, label in enumerate(labels):
        offered[label] += 1
        lists.setdefault(label, [])
        first, second = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
        if sum(map(len, lists.values())) == capacity:
            top = max(map(len, lists.values()))
            tied = [c for c in lists if len(lists[c]) == top]
            were_largest |= set(tied)
            if label not in were_largest:
                # Among equals, the class that has not changed for the longest time.
                victim = min(tied, key=changed.__getitem__)
            elif first < len(lists[label]) / offered[label]:
                victim = label
            else:
                continue
            replace_one(lists, victim, int(second * len(lists[victim])), changed, 2 * number)
        lists[label].append(number)
        changed[label] = 2 * number + 1
    return {(number, label) for label, numbers in lists.items() for number in numbers}


def ring_reference(capacity: int, labels: list[int]) -> set[tuple[int, int]]:
    lists: dict[int, list[int]] = {}
    changed: dict[int, int] = {}
    for number, label in enumerate(labels):
        lists.setdefault(label, [])
        victim = None
        if len(lists[label]) >= max(1, capacity // len(lists)):
            victim = label
        elif sum(map(len, lists.values())) == capacity:
            top = max(map(len, lists.values()))
            tied = [c for c in lists if len(lists[c]) == top]
            victim = min(tied, key=changed.__getitem__)
        if victim is not None:
            lists[victim].pop(0)
            changed[victim] = 2 * number
        lists[label].append(number)
        changed[label] = 2 * number + 1
    return {(number, label) for label, numbers in lists.items() for number in numbers}


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 20), STREAM, st.integers(0, 99))
def test_batch_updates_equal_the_references_by_sample(
    capacity: int, batches: list[list[int]], seed: int
) -> None:
    labels = [label for batch in batches for label in batch]
    balanced = fed(ClassBalanced(capacity, rng(seed)), batches)
    assert held(balanced) == class_balanced_reference(capacity, labels, rng(seed))
    ring = fed(Ring(capacity, rng(seed)), batches)
    assert held(ring) == ring_reference(capacity, labels)
    assert balanced.seen == ring.seen == len(labels)
    assert len(balanced) == min(capacity, len(labels))


def test_a_class_is_a_uniform_sample_of_its_own() -> None:
    kept = torch.zeros(40)
    for seed in range(300):
        memory = fed(ClassBalanced(8, rng(seed)), [[0] * 20 + [1] * 20])
        assert memory.class_counts(2).tolist() == [4, 4]
        kept[[number for number, _ in held(memory)]] += 1
    # Each sample is kept in 60 of 300 cases, standard deviation 6.9.
    assert 35 < kept.min() <= kept.max() < 85


def test_the_minority_is_kept_whole() -> None:
    stream = [[0] * 50, [1], [0] * 50, [2, 2], [0] * 50]
    memory = fed(ClassBalanced(10, rng()), stream)
    assert memory.class_counts(3).tolist() == [7, 1, 2]


def test_a_ring_keeps_the_newest_samples_within_quotas() -> None:
    memory = fed(Ring(6, rng()), [[0] * 10])
    assert held(memory) == {(number, 0) for number in range(4, 10)}
    fed(memory, [[1] * 10])
    assert held(memory) == {(7, 0), (8, 0), (9, 0), (17, 1), (18, 1), (19, 1)}
    fed(memory, [[2] * 3, [0]])
    assert memory.class_counts(3).tolist() == [2, 2, 2]
    assert (23, 0) in held(memory)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), STREAM, st.data())
def test_a_restored_memory_gives_equal_results(
    policy: type[SlotMemory], capacity: int, batches: list[list[int]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(batches)))
    whole = fed(policy(capacity, rng(3)), batches[:cut])
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed = policy(capacity, rng(9))
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for memory in (whole, resumed):
        fed(memory, batches[cut:])
    assert held(whole) == held(resumed)
    assert whole.sample(3).y.tolist() == resumed.sample(3).y.tolist()
    for key, value in whole.state_dict().items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, resumed.state_dict()[key])


@pytest.mark.parametrize("policy", POLICIES)
def test_damaged_states_raise(policy: type[SlotMemory]) -> None:
    state = fed(policy(4, rng()), [[0, 1, 1]]).state_dict()
    fresh = policy(4, rng())
    for key, value in (
        ("order", torch.tensor([0, 1, 7])),
        ("order", torch.tensor([0, 1])),
        ("known", torch.tensor([0])),
        ("filled", 9),
    ):
        with pytest.raises(ValueError, match=r"must list|the capacity"):
            fresh.load_state_dict(state | {key: value})
    with pytest.raises(SteradError, match=f"lacks order.*{policy.__name__}"):
        fresh.load_state_dict({k: v for k, v in state.items() if k != "order"})


@pytest.mark.parametrize("policy", POLICIES)
def test_the_work_of_an_update_does_not_depend_on_the_capacity(policy: type[SlotMemory]) -> None:
    memory = fed(policy(20_000, rng()), [[n % 2_000 for n in range(20_000)]])
    with torch.profiler.profile(profile_memory=True) as profile:
        fed(memory, [list(range(1_995, 2_005))])
    assert sum(max(0, one.self_cpu_memory_usage) for one in profile.key_averages()) < 10_000


@pytest.mark.parametrize("policy", [*POLICIES, Reservoir, GreedyBalanced])
def test_a_prototype_has_no_generator_and_is_copied(policy: type[SlotMemory]) -> None:
    prototype = policy(4)
    one, two = copy_prototype(prototype, rng(5)), copy_prototype(prototype, rng(5))
    named = policy(4, rng(5))
    for memory in (one, two, named):
        assert isinstance(memory, SlotMemory)
        fed(memory, [[0, 1, 2, 0, 1, 2, 1, 1]])
    assert held(one) == held(two) == held(named)
    assert len(prototype) == 0
    with pytest.raises(SteradError, match=r"already holds [34] samples: give an empty one"):
        copy_prototype(one, rng())


def test_what_is_no_memory_or_has_a_wrong_capacity_raises() -> None:
    with pytest.raises(SteradError, match="the memory list does not define update, sample"):
        copy_prototype([], rng())
    with pytest.raises(SteradError, match=r"the capacity of a memory is 2.5: give an integer"):
        Ring(2.5)  # type: ignore[arg-type]

    class Leaky(Everything):
        is_bounded = True

    memory = Leaky(2, rng())
    fed(memory, [[0, 0, 0]])
    with pytest.raises(SteradError, match="Leaky holds 3 samples and its capacity is 2"):
        check_size(memory, 2)
    check_size(fed(Everything(2, rng()), [[0, 0, 0]]), 2)
