"""Retrievals: which samples of a memory are replayed."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sterad.errors import SteradError
from sterad.memory import (
    RETRIEVALS,
    ClassBalancedRetrieval,
    MaximallyInterfered,
    Memory,
    NoMemory,
    RandomRetrieval,
    Reservoir,
    Retrieval,
)
from sterad.memory.checks import retrieve_checked
from sterad.memory.retrieval import LossRise
from sterad.streams import Batch

EMPTY = Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))


def filled(labels: list[int], seed: int = 0) -> Reservoir:
    """Return a memory of vectors that are their slots."""
    memory = Reservoir(max(1, len(labels)), torch.Generator().manual_seed(seed))
    x = torch.arange(len(labels)).float().view(-1, 1)
    memory.update(Batch(x, torch.tensor(labels, dtype=torch.int64), {"twice": 2 * x}))
    return memory


def unused(candidates: Batch) -> Tensor:
    raise AssertionError("this retrieval needs no losses")


def test_random_retrieval_is_a_sample_of_the_memory() -> None:
    labels = [0, 1, 2, 3] * 5
    drawn = RandomRetrieval().retrieve(filled(labels), 7, EMPTY, unused)
    assert torch.equal(drawn.x, filled(labels).sample(7).x)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 50))
def test_class_balanced_retrieval_fills_classes_in_rounds(labels: list[int], n: int) -> None:
    drawn = ClassBalancedRetrieval().retrieve(filled(labels), n, EMPTY, unused)
    assert len(drawn) == min(n, len(labels))
    slots = drawn.x.flatten().long().tolist() if len(drawn) else []
    assert len(set(slots)) == len(slots)
    assert [labels[slot] for slot in slots] == drawn.y.tolist()
    stored, found = Counter(labels), Counter(drawn.y.tolist())
    most = max(found.values(), default=0)
    assert all(found[c] >= min(stored[c], most - 1) for c in stored)


def test_class_balanced_retrieval_draws_classes_and_samples_at_random() -> None:
    memory, counts = filled([0] * 6 + [1] * 4), torch.zeros(10)
    for _ in range(400):
        drawn = ClassBalancedRetrieval().retrieve(memory, 3, EMPTY, unused)
        assert sorted(Counter(drawn.y.tolist()).values()) == [1, 2]
        counts[drawn.x.flatten().long()] += 1
    # 600 draws of each class: 100 of each sample of class 0 and 150 of class 1.
    assert 70 < counts[:6].min() <= counts[:6].max() < 130
    assert 115 < counts[6:].min() <= counts[6:].max() < 185


def test_class_balanced_retrieval_needs_slots() -> None:
    with pytest.raises(SteradError, match="needs the slots of a memory, and NoMemory has none"):
        ClassBalancedRetrieval().retrieve(NoMemory(), 3, EMPTY, unused)


def test_the_most_interfered_candidates_come_first_with_their_columns() -> None:
    memory = filled([0, 1] * 10)
    asked: list[Batch] = []

    def rise(candidates: Batch) -> Tensor:
        asked.append(candidates)
        return candidates.x.flatten().sub(9.2).abs()

    drawn = MaximallyInterfered(candidates=12).retrieve(memory, 3, EMPTY, rise)
    (candidates,) = asked
    assert len(candidates) == 12
    expected = sorted(candidates.x.flatten().tolist(), key=lambda value: -abs(value - 9.2))[:3]
    assert drawn.x.flatten().tolist() == expected
    assert torch.equal(drawn.extra["twice"], 2 * drawn.x)
    assert drawn.y.tolist() == [int(value) % 2 for value in expected]
    assert MaximallyInterfered().count_candidates(10) == 50, "published: 50 for 10"


def test_few_candidates_are_returned_without_losses() -> None:
    assert len(MaximallyInterfered().retrieve(filled([0, 1]), 3, EMPTY, unused)) == 2
    assert len(MaximallyInterfered().retrieve(NoMemory(), 3, EMPTY, unused)) == 0


def test_too_many_samples_or_no_batch_raise() -> None:
    class Generous(Reservoir):
        def sample(self, n: int) -> Batch:
            return super().sample(n + 1)

    class Lists(Retrieval):
        def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
            return [memory.sample(n)]  # type: ignore[return-value]

    generous = Generous(9)
    generous.update(Batch(torch.rand(5, 2), torch.tensor([0, 1, 2, 0, 1])))
    with pytest.raises(SteradError, match="Generous returned 3 samples where 2 were requested"):
        retrieve_checked(RandomRetrieval(), generous, 2, EMPTY, unused)
    with pytest.raises(SteradError, match="Lists returned list: return a Batch"):
        retrieve_checked(Lists(), filled([0, 1]), 1, EMPTY, unused)
    assert len(retrieve_checked(RandomRetrieval(), filled([0, 1]), 1, EMPTY, unused)) == 1


def test_registration_refuses_other_classes() -> None:
    class Half(Retrieval):
        pass

    class Demanding(RandomRetrieval):
        def __init__(self, n: int) -> None: ...

    for cls, message in (
        (Half, "does not define retrieve"),
        (Reservoir, "is no subclass of Retrieval"),
        (Demanding, "cannot be called without arguments"),
    ):
        with pytest.raises(SteradError, match=message):
            RETRIEVALS.register("wrong")(cls)  # type: ignore[arg-type]
