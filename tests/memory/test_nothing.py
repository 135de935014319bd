import torch

from sterad.memory import Memory, Nothing
from sterad.streams import Batch


def test_forgets_whatever_it_is_offered() -> None:
    memory: Memory = Nothing()
    memory.update(Batch(torch.ones(3, 1, 8, 8), torch.tensor([0, 1, 1])))
    assert len(memory) == memory.capacity == 0
    assert list(memory.everything()) == []
    counts = memory.class_counts(4)
    assert counts.tolist() == [0, 0, 0, 0]
    assert counts.dtype == torch.int64


def test_gives_an_empty_batch_that_joins_with_any() -> None:
    retrieved, batch = Nothing().sample(5), Batch(torch.ones(2, 7), torch.tensor([0, 1]))
    assert len(retrieved) == 0
    joined = Batch.joined(retrieved, batch)
    assert torch.equal(joined.x, batch.x)
    assert torch.equal(joined.y, batch.y)


def test_its_state_is_nothing() -> None:
    memory = Nothing()
    assert memory.state_dict() == {}
    memory.load_state_dict(memory.state_dict())
    assert len(memory) == 0
