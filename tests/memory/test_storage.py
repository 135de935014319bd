import pytest
import torch

from sterad.errors import SteradError
from sterad.memory import Columns
from sterad.streams import Batch

ROWS, SLOTS = torch.tensor([1, 0]), torch.tensor([0, 2])


def batch(**extra: torch.Tensor) -> Batch:
    images = torch.randint(256, (2, 3, 4, 4), generator=torch.Generator().manual_seed(0)) / 255
    return Batch(images, torch.tensor([7, 8]), extra)


def written(given: Batch) -> Columns:
    columns = Columns(4)
    columns.prepare(given)
    columns.write(given, {0: 1, 2: 0})
    return columns


def test_images_are_stored_as_uint8_and_restored_exactly() -> None:
    given = batch()
    columns = written(given)
    assert columns.state_dict(4)["x"].dtype == torch.uint8
    back = columns.read(SLOTS)
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
    columns = written(given)
    torch.testing.assert_close(given.x, original, rtol=0, atol=0)
    given.x.zero_()
    given.y.zero_()
    back = columns.read(torch.arange(4))
    assert not back.extra["logits"].requires_grad
    back.y.zero_()
    assert columns.read(SLOTS).y.tolist() == [8, 7]
    torch.testing.assert_close(columns.read(SLOTS).x, original[ROWS], rtol=0, atol=0)


def test_longer_extra_vectors_pad_old_rows_with_zeros() -> None:
    columns = written(batch(logits=torch.tensor([[1.0, 2.0], [3.0, 4.0]])))
    longer = batch(logits=torch.full((2, 3), 5.0))
    columns.prepare(longer)
    columns.write(longer, {1: 0})
    back = columns.read(torch.arange(4))
    assert back.extra["logits"].tolist() == [[3, 4, 0], [5, 5, 5], [1, 2, 0], [0, 0, 0]]
    assert back.y.tolist() == [8, 7, 7, 0]
    again = Columns(4)
    again.load_state_dict(columns.state_dict(4))
    torch.testing.assert_close(again.read(torch.arange(4)).extra["logits"], back.extra["logits"])


def test_a_rejected_batch_widens_no_column() -> None:
    columns = written(batch(logits=torch.ones(2, 2), task=torch.tensor([1, 2])))
    with pytest.raises(SteradError, match="task"):
        columns.prepare(batch(logits=torch.ones(2, 3)))
    assert columns.state_dict(4)["logits"].shape == (4, 2)


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
        Columns(capacity)


def test_grow_keeps_the_samples() -> None:
    given = batch(logits=torch.ones(2, 5))
    columns = written(given)
    columns.grow(9)
    assert columns.capacity == 9
    assert {len(column) for column in columns.state_dict(20).values()} == {9}
    back = columns.read(SLOTS)
    torch.testing.assert_close(back.x, given.x[ROWS], rtol=0, atol=0)
    assert back.y.tolist() == [8, 7]
