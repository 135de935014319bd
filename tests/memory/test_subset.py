"""Subsets of a memory: every retrieval draws from them, and only from them."""

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.memory import RETRIEVALS, MemorySubset, Reservoir
from sterad.streams import Batch

BATCH = Batch(torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64))


def filled(n: int = 20) -> Reservoir:
    memory = Reservoir(n, torch.Generator().manual_seed(0))
    x = torch.arange(n, dtype=torch.float32).view(n, 1)
    memory.update(Batch(x, torch.arange(n) % 4, {"task": torch.arange(n) // 10}))
    return memory


def rise(candidates: Batch) -> Tensor:
    return candidates.x[:, 0]


@pytest.mark.parametrize("name", list(RETRIEVALS))
def test_every_retrieval_draws_from_the_subset_alone(name: str) -> None:
    memory, retrieval = filled(), RETRIEVALS[name]()
    for task in (0, 1):
        slots = (memory.column("task") == task).nonzero().squeeze(1)
        drawn = retrieval.retrieve(MemorySubset(memory, slots), 6, BATCH, rise)
        assert len(drawn) == 6
        assert len(set(drawn.x.flatten().tolist())) == 6, "distinct"
        assert drawn.extra["task"].tolist() == [task] * 6


def test_a_subset_is_random_and_moves_the_generator_of_its_memory() -> None:
    memory, same = filled(), filled()
    slots = torch.arange(10, 20)
    first = MemorySubset(memory, slots).sample(4)
    assert torch.equal(first.y, MemorySubset(same, slots).sample(4).y)
    assert torch.equal(memory.rng.get_state(), same.rng.get_state())
    assert not torch.equal(memory.rng.get_state(), filled().rng.get_state())
    counts = torch.zeros(20)
    for _ in range(500):
        counts += torch.bincount(MemorySubset(memory, slots).sample(4).x[:, 0].long(), minlength=20)
    assert not counts[:10].any()
    assert bool(((counts[10:] - 200).abs() < 60).all())  # five standard deviations


def test_small_and_empty_subsets() -> None:
    memory, none = filled(), torch.zeros(0, dtype=torch.int64)
    assert MemorySubset(memory, torch.tensor([3, 7])).sample(5).x.flatten().tolist() == [3.0, 7.0]
    assert len(MemorySubset(memory, none).sample(5)) == 0
    assert len(MemorySubset(Reservoir(4), none).sample(5)) == 0
    assert len(Reservoir(4).column("task")) == 0
    with pytest.raises(SteradError, match="stores nothing: update the memory itself"):
        MemorySubset(memory, none).update(BATCH)
