import io

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sterad.memory import MEMORIES, Everything, Memory, NoMemory
from sterad.streams import Batch


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(start: int, n: int) -> Batch:
    number = torch.arange(start, start + n)
    return Batch((number % 256 / 255).view(-1, 1, 1, 1).expand(-1, 1, 2, 2), number)


def fed(memory: Everything, sizes: list[int]) -> Everything:
    for size in sizes:
        memory.update(numbered(len(memory), size))
    return memory


def held(memory: Memory) -> list[int]:
    return [label for batch in memory.everything(7) for label in batch.y.tolist()]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 9))
def test_everything_is_kept_in_order_as_bytes(sizes: list[int], capacity: int) -> None:
    memory = fed(Everything(capacity, rng()), sizes)
    total = sum(sizes)
    assert held(memory) == list(range(total))
    assert len(memory) == total
    assert total <= memory.capacity < max(2 * total, capacity + 1)
    for batch in memory.everything():
        assert torch.equal(batch.x, numbered(int(batch.y[0]), len(batch)).x)
    if total:
        assert memory.state_dict()["columns"]["x"].dtype == torch.uint8
        assert memory.read(torch.tensor([total - 1])).y.item() == total - 1


def test_capacity_doubles() -> None:
    memory, capacities = Everything(2, rng()), set[int]()
    for _ in range(100):
        capacities.add(fed(memory, [1]).capacity)
    assert capacities == {2, 4, 8, 16, 32, 64, 128}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
def test_a_restored_memory_gives_equal_results(sizes: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(sizes)))
    whole = fed(Everything(4, rng(3)), sizes[:cut])
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    file.seek(0)
    resumed = Everything(4, rng(9))
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert held(fed(whole, sizes[cut:])) == held(fed(resumed, sizes[cut:]))
    assert whole.capacity == resumed.capacity
    assert whole.sample(3).y.tolist() == resumed.sample(3).y.tolist()


def test_baselines_are_registered_and_ignore_the_capacity() -> None:
    everything = MEMORIES["everything"](2, rng())
    everything.update(numbered(0, 5))
    assert len(everything) == 5
    assert MEMORIES["none"](2, rng()).capacity == 0


def test_no_memory_discards_batches() -> None:
    memory: Memory = NoMemory()
    memory.update(Batch(torch.ones(3, 1, 8, 8), torch.tensor([0, 1, 1])))
    assert len(memory) == memory.capacity == 0
    assert list(memory.everything()) == []
    counts = memory.class_counts(4)
    assert counts.tolist() == [0, 0, 0, 0]
    assert counts.dtype == torch.int64


def test_an_empty_batch_joins_with_any_batch() -> None:
    retrieved, batch = NoMemory().sample(5), Batch(torch.ones(2, 7), torch.tensor([0, 1]))
    assert len(retrieved) == 0
    joined = Batch.concatenate(retrieved, batch)
    assert torch.equal(joined.x, batch.x)
    assert torch.equal(joined.y, batch.y)


def test_the_state_of_no_memory_is_empty() -> None:
    memory = NoMemory()
    assert memory.state_dict() == {}
    memory.load_state_dict(memory.state_dict())
    assert len(memory) == 0
