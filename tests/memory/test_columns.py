import pytest
import torch

from sterad.errors import SteradError
from sterad.memory import Everything, Reservoir
from sterad.streams import Batch

ROWS, SLOTS = torch.tensor([1, 0]), torch.tensor([0, 2])


def batch(**extra: torch.Tensor) -> Batch:
    images = torch.randint(256, (2, 3, 4, 4), generator=torch.Generator().manual_seed(0)) / 255
    return Batch(images, torch.tensor([7, 8]), extra)


def full_reservoir() -> Reservoir:
    memory = Reservoir(4, torch.Generator())
    memory.seen = 4
    return memory


def written(given: Batch) -> Reservoir:
    memory = full_reservoir()
    memory.prepare(given)
    memory.write(given, {0: 1, 2: 0})
    return memory


def test_images_are_stored_as_uint8_and_restored_exactly() -> None:
    given = batch()
    memory = written(given)
    assert memory.state_dict()["columns"]["x"].dtype == torch.uint8
    back = memory.read(SLOTS)
    torch.testing.assert_close(back.x, given.x[ROWS], rtol=0, atol=0)
    assert back.y.tolist() == [8, 7]


def test_other_columns_keep_their_dtype() -> None:
    given = batch(logits=torch.randn(2, 5, dtype=torch.float64), task=torch.tensor([1, 2]))
    back = written(given).read(SLOTS)
    for name, column in given.extra.items():
        torch.testing.assert_close(back.extra[name], column[ROWS], rtol=0, atol=0)


def test_vectors_are_stored_as_floats() -> None:
    given = Batch(torch.tensor([[300.0], [-0.123]]), torch.tensor([0, 1]))
    assert written(given).read(SLOTS).x.tolist() == given.x[ROWS].tolist()


def test_batches_and_columns_share_no_memory() -> None:
    given = batch(logits=torch.ones(2, 5).requires_grad_())
    original = given.x.clone()
    memory = written(given)
    torch.testing.assert_close(given.x, original, rtol=0, atol=0)
    given.x.zero_()
    given.y.zero_()
    back = memory.read(torch.arange(4))
    assert not back.extra["logits"].requires_grad
    back.y.zero_()
    assert memory.read(SLOTS).y.tolist() == [8, 7]
    torch.testing.assert_close(memory.read(SLOTS).x, original[ROWS], rtol=0, atol=0)


def test_longer_extra_vectors_pad_old_rows_with_zeros() -> None:
    memory = written(batch(logits=torch.tensor([[1.0, 2.0], [3.0, 4.0]])))
    longer = batch(logits=torch.full((2, 3), 5.0))
    memory.prepare(longer)
    memory.write(longer, {1: 0})
    back = memory.read(torch.arange(4))
    assert back.extra["logits"].tolist() == [[3, 4, 0], [5, 5, 5], [1, 2, 0], [0, 0, 0]]
    assert back.y.tolist() == [8, 7, 7, 0]
    again = full_reservoir()
    again.load_state_dict(memory.state_dict())
    torch.testing.assert_close(again.read(torch.arange(4)).extra["logits"], back.extra["logits"])


def test_a_rejected_batch_widens_no_column() -> None:
    memory = written(batch(logits=torch.ones(2, 2), task=torch.tensor([1, 2])))
    with pytest.raises(SteradError, match="task"):
        memory.prepare(batch(logits=torch.ones(2, 3)))
    assert memory.state_dict()["columns"]["logits"].shape == (4, 2)


@pytest.mark.parametrize("row", [(1,), (2, 2), ()])
def test_rows_that_are_not_longer_vectors_raise(row: tuple[int, ...]) -> None:
    with pytest.raises(SteradError, match=r"logits \(2,\) float32 and the batch has"):
        written(batch(logits=torch.ones(2, 2))).prepare(batch(logits=torch.ones(2, *row)))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (batch(logits=torch.ones(2, 5)), r"x \(3, 4, 4\) uint8.*logits \(5,\) float32"),
        (Batch(torch.ones(2, 1, 4, 4), torch.ones(2).long()), r"x \(1, 4, 4\) uint8"),
        (Batch(torch.ones(2, 48), torch.ones(2).long()), r"x \(48,\) float32"),
        (batch(y=torch.ones(2)), "named x or y"),
    ],
)
def test_a_batch_of_other_columns_raises(other: Batch, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        written(batch()).prepare(other)


@pytest.mark.parametrize("capacity", [0, -3])
def test_no_capacity_raises(capacity: int) -> None:
    with pytest.raises(SteradError, match=f"memory {capacity} .* at least 1.*finetune"):
        Reservoir(capacity, torch.Generator())


def test_a_larger_capacity_keeps_all_columns() -> None:
    memory, given = Everything(2, torch.Generator()), batch(logits=torch.ones(2, 5))
    for _ in range(3):
        memory.update(given)
    assert memory.capacity == 8
    back = memory.read(torch.arange(6))
    torch.testing.assert_close(back.x, torch.cat([given.x] * 3), rtol=0, atol=0)
    assert (back.y.tolist(), back.extra["logits"].shape) == ([7, 8] * 3, (6, 5))
