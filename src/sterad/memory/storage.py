"""Columns: the storage of a memory, a fixed number of slots in named tensors."""

from collections.abc import Mapping

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.errors import SteradError
from sterad.streams import Batch
from sterad.streams.batch import to_bytes, to_unit

Row = tuple[tuple[int, ...], torch.dtype]
"""Shape and dtype of one row of a column."""
Layout = dict[str, Row]
"""Row of each column, by name."""


class Columns:
    """Preallocated columns: `x` and `y` on the CPU, and the extra columns of the batches.

    Extra columns stay on the device of their values, which avoids copies to the CPU.

    The first batch determines the columns. Images (n, c, h, w) are stored as uint8, which is exact
    for images that were uint8 before; other columns keep their dtype. Extra columns of vectors are
    widened for longer vectors, such as the logits of a growing head; earlier rows are padded with
    zeros.
    """

    def __init__(self, capacity: int) -> None:
        """Create storage for `capacity` samples; the first batch allocates it."""
        if capacity < 1:
            raise SteradError(
                f"memory {capacity} stores no samples to replay: give at least 1, "
                "or use the method finetune, which has no memory"
            )
        self.capacity = capacity
        self.columns: dict[str, Tensor] = {}
        self._layout: Layout = {}

    def prepare(self, batch: Batch) -> None:
        """Allocate or widen the columns for `batch`; raise if its columns do not match."""
        layout = {name: _row_of(name, column) for name, column in _columns_of(batch).items()}
        if not self.columns:
            self._allocate(layout)
        wider = {name: layout[name] for name in batch.extra if self._grows(name, layout[name])}
        if layout != self._layout | wider:
            raise SteradError(
                f"the memory holds {_format(self._layout)} and the batch has {_format(layout)}: "
                "give every batch the same columns and shapes, or start a new memory"
            )
        for name, row in wider.items():
            self._widen(name, row)

    def write(self, batch: Batch, kept: Mapping[int, int]) -> None:
        """Write samples of an admitted batch; `kept` maps slots to positions in the batch."""
        if not kept:
            return
        slots, chosen = torch.tensor([*kept]), torch.tensor([*kept.values()])
        for name, values in _columns_of(batch).items():
            place = values.device if name in batch.extra else torch.device("cpu")
            column = self.columns[name] = self.columns[name].to(place)
            rows = values.detach().index_select(0, to_device(chosen, values.device)).to(place)
            stored = to_bytes(rows) if rows.dtype != column.dtype else rows
            column.index_copy_(0, to_device(slots, place), stored)

    def read(self, slots: Tensor) -> Batch:
        """Return the samples in `slots`, or an empty batch before the first one."""
        if not self.columns:
            return Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))
        rows = {
            name: column.index_select(0, to_device(slots, column.device))
            for name, column in self.columns.items()
        }
        return Batch(to_unit(rows.pop("x")), rows.pop("y"), rows)

    def labels(self, filled: int) -> Tensor:
        """Return the labels of the first `filled` slots."""
        return self.columns["y"][:filled] if self.columns else torch.empty(0, dtype=torch.int64)

    def grow(self, capacity: int) -> None:
        """Reallocate for a larger `capacity`; stored samples keep their slots."""
        kept, self.capacity = self.columns, capacity
        self._allocate(self._layout)
        for name, column in kept.items():
            self.columns[name][: len(column)] = column

    def state_dict(self, filled: int) -> dict[str, Tensor]:
        """Return copies of the first `filled` slots of all columns."""
        return {name: column[:filled].cpu().clone() for name, column in self.columns.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Allocate the columns and fill the first slots from `state`."""
        self._allocate({name: (tuple(c.shape[1:]), c.dtype) for name, c in state.items()})
        for name, column in state.items():
            self.columns[name][: len(column)] = column

    def _grows(self, name: str, row: Row) -> bool:
        """Return whether `row` is a longer vector of the dtype of the column."""
        (shape, dtype), (old, kept) = row, self._layout.get(name, row)
        return dtype == kept and len(shape) == len(old) == 1 and shape > old

    def _widen(self, name: str, row: Row) -> None:
        """Copy a column to one with longer rows."""
        old = self.columns[name]
        self.columns[name] = torch.zeros((self.capacity, *row[0]), dtype=row[1], device=old.device)
        self.columns[name][:, : old.shape[1]] = old
        self._layout[name] = row

    def _allocate(self, layout: Layout) -> None:
        """Allocate the columns; writing zeros makes the system commit their pages now."""
        self._layout = layout
        self.columns = {
            name: torch.empty((self.capacity, *shape), dtype=dtype).zero_()
            for name, (shape, dtype) in layout.items()
        }


def _columns_of(batch: Batch) -> dict[str, Tensor]:
    if "x" in batch.extra or "y" in batch.extra:
        raise SteradError("an extra column is named x or y, which are reserved: rename it")
    return {"x": batch.x, "y": batch.y, **batch.extra}


def _row_of(name: str, values: Tensor) -> Row:
    pixels = name == "x" and values.ndim == 4 and values.is_floating_point()
    return tuple(values.shape[1:]), torch.uint8 if pixels else values.dtype


def _format(layout: Layout) -> str:
    return ", ".join(
        f"{name} {shape} {str(dtype).removeprefix('torch.')}"
        for name, (shape, dtype) in layout.items()
    )
