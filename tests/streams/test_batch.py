import pytest
import torch

from sterad.errors import SteradError
from sterad.streams import Batch


def batch(n: int, value: float) -> Batch:
    return Batch(torch.full((n, 1, 2, 2), value), torch.full((n,), int(value)))


def test_joined_puts_memory_before_the_stream() -> None:
    both = Batch.joined(batch(2, 0), batch(3, 1))
    assert len(both) == 5
    assert both.y.tolist() == [0, 0, 1, 1, 1]
    assert both.x[:, 0, 0, 0].tolist() == [0, 0, 1, 1, 1]


def test_joining_an_empty_memory_gives_the_stream() -> None:
    empty = Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))
    assert Batch.joined(empty, batch(3, 1)).x.shape == (3, 1, 2, 2)


def test_to_moves_every_column() -> None:
    moved = Batch(torch.ones(1, 2), torch.zeros(1), {"logits": torch.ones(1, 3)}).to("meta")
    assert {moved.x.device.type, moved.y.device.type, moved.extra["logits"].device.type} == {"meta"}


def test_columns_of_another_length_get_a_sentence() -> None:
    with pytest.raises(SteradError, match="2 inputs and 3 labels"):
        Batch(torch.zeros(2, 4), torch.zeros(3))
    with pytest.raises(SteradError, match="2 inputs and 1 logits"):
        Batch(torch.zeros(2, 4), torch.zeros(2), {"logits": torch.zeros(1, 4)})
