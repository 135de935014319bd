"""Columns: a fixed number of slots under named columns, allocated once; images lie as bytes."""

from collections.abc import Mapping

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.errors import SteradError
from sterad.streams import Batch
from sterad.streams.pixels import to_bytes, to_unit

Row = tuple[tuple[int, ...], torch.dtype]
"""Shape of one row of a column, and its type."""
Layout = dict[str, Row]
"""The rows of all columns, by name."""


class Columns:
    """The storage of a memory: `x` and `y` of the batches on the CPU, and their extra columns.

    Extra columns lie where their values are: what a device computed need not leave it.

    The first batch written decides the columns. Images (n, c, h, w) are kept as uint8, which is
    exact for images that were bytes before; all else keeps its type. Extra columns of vectors grow
    with wider ones, as logits do with the head: what was kept before ends in zeros.
    """

    def __init__(self, capacity: int) -> None:
        """Make room for `capacity` samples."""
        if capacity < 1:
            raise SteradError(
                f"memory {capacity} keeps nothing to replay: give at least 1, "
                "or use the method finetune, which keeps none"
            )
        self.capacity = capacity
        self._columns: dict[str, Tensor] = {}
        self._layout: Layout = {}

    def admit(self, batch: Batch) -> None:
        """Make the columns for the first batch, widen them for later ones, or refuse those."""
        layout = {name: _stored(name, column) for name, column in _named(batch).items()}
        if not self._columns:
            self._allocate(layout)
        wider = {name: layout[name] for name in batch.extra if self._grows(name, layout[name])}
        if layout != self._layout | wider:
            raise SteradError(
                f"the memory holds {_told(self._layout)} and the batch has {_told(layout)}: "
                "give every batch the same columns and shapes, or start a new memory"
            )
        for name, row in wider.items():
            self._widen(name, row)

    def write(self, batch: Batch, kept: Mapping[int, int]) -> None:
        """Put samples of an admitted batch into slots: `kept` has the position of each by slot."""
        if not kept:
            return
        slots, chosen = torch.tensor([*kept]), torch.tensor([*kept.values()])
        for name, values in _named(batch).items():
            place = values.device if name in batch.extra else torch.device("cpu")
            column = self._columns[name] = self._columns[name].to(place)
            rows = values.detach().index_select(0, to_device(chosen, values.device)).to(place)
            stored = to_bytes(rows) if rows.dtype != column.dtype else rows
            column.index_copy_(0, to_device(slots, place), stored)

    def read(self, slots: Tensor) -> Batch:
        """Return the samples in `slots`; without any column yet, an empty batch."""
        if not self._columns:
            return Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))
        rows = {
            name: column.index_select(0, to_device(slots, column.device))
            for name, column in self._columns.items()
        }
        return Batch(to_unit(rows.pop("x")), rows.pop("y"), rows)

    def labels(self, filled: int) -> Tensor:
        """Return the labels of the first `filled` slots."""
        return self._columns["y"][:filled] if self._columns else torch.empty(0, dtype=torch.int64)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` samples, more than before; what is kept keeps its slot."""
        kept, self.capacity = self._columns, capacity
        self._allocate(self._layout)
        for name, column in kept.items():
            self._columns[name][: len(column)] = column

    def state_dict(self, filled: int) -> dict[str, Tensor]:
        """Return copies of the columns, cut to the first `filled` slots."""
        return {name: column[:filled].cpu().clone() for name, column in self._columns.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Fill the first slots from `state`."""
        self._allocate({name: (tuple(c.shape[1:]), c.dtype) for name, c in state.items()})
        for name, column in state.items():
            self._columns[name][: len(column)] = column

    def _grows(self, name: str, row: Row) -> bool:
        """Return whether rows like `row` are vectors as the column has, only longer."""
        (shape, dtype), (old, kept) = row, self._layout.get(name, row)
        return dtype == kept and len(shape) == len(old) == 1 and shape > old

    def _widen(self, name: str, row: Row) -> None:
        """Let a column have longer rows, at the cost of one copy."""
        old = self._columns[name]
        self._columns[name] = torch.zeros((self.capacity, *row[0]), dtype=row[1], device=old.device)
        self._columns[name][:, : old.shape[1]] = old
        self._layout[name] = row

    def _allocate(self, layout: Layout) -> None:
        """Make the columns, and write them so that their pages are resident from the start."""
        self._layout = layout
        self._columns = {
            name: torch.empty((self.capacity, *shape), dtype=dtype).zero_()
            for name, (shape, dtype) in layout.items()
        }


def _named(batch: Batch) -> dict[str, Tensor]:
    if "x" in batch.extra or "y" in batch.extra:
        raise SteradError("an extra column is named x or y, as the batch's own: rename it")
    return {"x": batch.x, "y": batch.y, **batch.extra}


def _stored(name: str, values: Tensor) -> Row:
    pixels = name == "x" and values.ndim == 4 and values.is_floating_point()
    return tuple(values.shape[1:]), torch.uint8 if pixels else values.dtype


def _told(layout: Layout) -> str:
    return ", ".join(
        f"{name} {shape} {str(dtype).removeprefix('torch.')}"
        for name, (shape, dtype) in layout.items()
    )
