import pytest
import torch

from sterad.errors import SteradError
from sterad.streams import Batch
from sterad.streams.batch import to_bytes, to_unit


def batch(n: int, value: float) -> Batch:
    return Batch(torch.full((n, 1, 2, 2), value), torch.full((n,), int(value)))


def test_joined_puts_memory_before_the_stream() -> None:
    both = Batch.concatenate(batch(2, 0), batch(3, 1))
    assert len(both) == 5
    assert both.y.tolist() == [0, 0, 1, 1, 1]
    assert both.x[:, 0, 0, 0].tolist() == [0, 0, 1, 1, 1]


def test_joining_an_empty_memory_gives_the_stream() -> None:
    empty = Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))
    assert Batch.concatenate(empty, batch(3, 1)).x.shape == (3, 1, 2, 2)


def test_to_moves_every_column() -> None:
    moved = Batch(torch.ones(1, 2), torch.zeros(1), {"logits": torch.ones(1, 3)}).to("meta")
    assert {moved.x.device.type, moved.y.device.type, moved.extra["logits"].device.type} == {"meta"}


def test_columns_of_unequal_length_raise() -> None:
    with pytest.raises(SteradError, match="2 inputs and 3 labels"):
        Batch(torch.zeros(2, 4), torch.zeros(3))
    with pytest.raises(SteradError, match="2 inputs and 1 logits"):
        Batch(torch.zeros(2, 4), torch.zeros(2), {"logits": torch.zeros(1, 4)})


def test_to_bytes_inverts_to_unit() -> None:
    pixels = torch.arange(256, dtype=torch.uint8)
    unit = to_unit(pixels)
    assert unit.dtype == torch.float32
    assert [unit.min().item(), unit.max().item()] == [0, 1]
    torch.testing.assert_close(to_bytes(unit), pixels, rtol=0, atol=0)
    assert pixels.tolist() == list(range(256))


def test_to_unit_returns_floats_unchanged() -> None:
    vectors = torch.tensor([[300.0, -2.0]])
    assert to_unit(vectors) is vectors


def test_to_bytes_clips_values_out_of_range() -> None:
    assert to_bytes(torch.tensor([-0.1, 1.1])).tolist() == [0, 255]
