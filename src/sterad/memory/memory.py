"""Memory: the replay buffer of a method, and the base of memories that store samples in slots."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.errors import SteradError
from sterad.registry import Registry
from sterad.saved_state import check_count, check_like
from sterad.streams import Batch
from sterad.streams.batch import to_bytes, to_unit

Layout = dict[str, tuple[tuple[int, ...], torch.dtype]]
"""Shape and dtype of one row of each column, by name."""


class Memory(Protocol):
    """A bounded set of past samples; a method calls `sample` before `update` in each step."""

    @property
    def capacity(self) -> int:
        """Maximum number of samples."""

    def __len__(self) -> int:
        """Return the number of stored samples."""

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order, without changing or keeping the batch."""

    def sample(self, n: int) -> Batch:
        """Return `n` distinct random samples, or all in storage order if it holds fewer."""

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield all samples in storage order."""

    def class_counts(self, classes: int) -> Tensor:
        """Return the number of stored samples of each class: (classes,) int64."""

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as tensors, numbers and dictionaries."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, so that all later results are equal."""


def _find_problem(policy: Any) -> str | None:
    """Return why a class cannot be registered as a memory policy."""
    try:
        inspect.signature(policy).bind(1, torch.Generator())
    except (TypeError, ValueError) as error:
        return f"cannot be called with a capacity and a generator ({error}): accept both"
    return find_missing(policy)


def find_missing(policy: Any) -> str | None:
    """Return which methods of `Memory` a class or an object does not define."""
    methods = (name for name, member in vars(Memory).items() if inspect.isfunction(member))
    missing = [name for name in methods if not hasattr(policy, name)]
    return f"does not define {', '.join(missing)}: define each" if missing else None


MEMORIES: Registry[Callable[[int, torch.Generator], Memory]] = Registry(
    "memory policy", "sterad.memories", _find_problem
)


class SlotMemory(ABC):
    """A memory whose samples occupy the first `len` slots; subclasses implement `update` and `len`.

    `update` calls `self.prepare(batch)`, decides which positions of the batch go to which slots,
    calls `self.write(batch, {slot: position})` and adds `len(batch)` to `self.seen`.

    The first batch determines the columns: `x` and `y` on the CPU, and the extra columns of the
    batch on the device of their values, which avoids copies to the CPU. Images (n, c, h, w) are
    stored as uint8, which is exact for images that were uint8 before; other columns keep their
    dtype. Extra columns of vectors are widened for longer vectors, such as the logits of a growing
    head; earlier rows are padded with zeros.
    """

    is_bounded: ClassVar[bool] = True
    """Whether the capacity is a limit, and not only the space allocated so far."""

    def __init__(self, capacity: int, rng: torch.Generator | None = None) -> None:
        """Hold at most `capacity` samples; `rng` draws which are kept and which are sampled.

        Without `rng` the memory is a prototype: `build_learner` copies it and gives the copy the
        generator of the run.
        """
        if not isinstance(capacity, int) or isinstance(capacity, bool):
            raise SteradError(
                f"the capacity of a memory is {capacity!r}: give an integer, such as 5000"
            )
        if capacity < 1:
            raise SteradError(
                f"memory {capacity} stores no samples to replay: give at least 1, "
                "or use the method finetune, which has no memory"
            )
        self.capacity = capacity
        self.seen = 0
        """Number of samples offered so far."""
        self._rng = torch.Generator() if rng is None else rng
        self.watchers: list[Callable[[list[int]], None]] = []
        """Called with the slots that a write is about to change."""
        self._columns: dict[str, Tensor] = {}
        self._layout: Layout = {}

    def start(self, rng: torch.Generator) -> None:
        """Draw from `rng` from now on; its state becomes part of the memory's."""
        self._rng = rng

    @property
    def rng(self) -> torch.Generator:
        """The generator of the memory, whose state is saved with it."""
        return self._rng

    @property
    def labels(self) -> Tensor:
        """Labels of the stored samples in storage order: (len,) int64."""
        return self.column("y")

    def column(self, name: str) -> Tensor:
        """Return an extra column of the stored samples in storage order, empty before the first."""
        return self._columns.get(name, torch.empty(0, dtype=torch.int64))[: len(self)]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""

    def prepare(self, batch: Batch) -> None:
        """Allocate or widen the columns for `batch`; raise if its columns do not match."""
        if not len(batch):  # a batch from an empty memory has no columns
            return
        layout = _layout_of(_columns_of(batch))
        if layout == self._layout:
            return
        wider = {name: layout[name] for name in batch.extra if self._is_wider(name, layout)}
        if self._columns and layout != self._layout | wider:
            raise SteradError(
                f"the memory holds {_format(self._layout)} and the batch has {_format(layout)}: "
                "give every batch the same columns and shapes, or start a new memory"
            )
        self._allocate(wider if self._columns else layout)

    def write(self, batch: Batch, kept: Mapping[int, int]) -> None:
        """Write samples of a prepared batch; `kept` maps slots to positions in the batch."""
        if not kept:
            return
        for watch in self.watchers:
            watch([*kept])
        slots, chosen = torch.tensor([*kept]), torch.tensor([*kept.values()])
        for name, values in _columns_of(batch).items():
            place = values.device if name in batch.extra else torch.device("cpu")
            column = self._columns[name] = self._columns[name].to(place)
            rows = values.detach().index_select(0, to_device(chosen, values.device)).to(place)
            stored = to_bytes(rows) if rows.dtype != column.dtype else rows
            column.index_copy_(0, to_device(slots, place), stored)

    def read(self, slots: Tensor) -> Batch:
        """Return the samples in `slots`, each below `len`; an empty batch before the first one."""
        if not self._columns:
            return Batch(torch.empty(0), torch.empty(0, dtype=torch.int64))
        rows = {
            name: column.index_select(0, to_device(slots, column.device))
            for name, column in self._columns.items()
        }
        return Batch(to_unit(rows.pop("x")), rows.pop("y"), rows)

    def sample(self, n: int) -> Batch:
        """Return `n` distinct random samples, or all in storage order if it holds fewer."""
        if n < 0:
            raise SteradError(f"cannot draw {n} samples from the memory: give 0 or more")
        if n > len(self):
            return self.read(torch.arange(len(self)))
        return self.read(draw_distinct(n, len(self), self._rng))

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield all samples in storage order."""
        for start in range(0, len(self), batch_size):
            yield self.read(torch.arange(start, min(start + batch_size, len(self))))

    def class_counts(self, classes: int) -> Tensor:
        """Return the number of stored samples of each class: (classes,) int64."""
        return torch.bincount(self.labels, minlength=classes)

    def state_dict(self) -> dict[str, Any]:
        """Return the stored samples, the number of samples offered, and the generator state."""
        columns = {
            name: column[: len(self)].cpu().clone() for name, column in self._columns.items()
        }
        return {
            "capacity": self.capacity,
            "seen": self.seen,
            "columns": columns,
            "rng": self._rng.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, so that all later results are equal."""
        missing = set(self.state_dict()) - set(state)
        if missing:
            raise SteradError(
                f"the saved memory lacks {', '.join(sorted(missing))}: "
                f"load the state of a {type(self).__name__}, or start again"
            )
        if state["capacity"] != self.capacity:
            raise SteradError(
                f"the saved memory has capacity {state['capacity']} and this one "
                f"{self.capacity}: create a memory of the saved capacity"
            )
        check_count(state["seen"], "the number of samples offered")
        check_like(state["rng"], self._rng.get_state(), "the generator of the memory")
        filled = self.filled(state)
        lengths = {len(column) for column in state["columns"].values()} or {0}
        if lengths != {filled}:
            raise SteradError(
                f"a column of the saved memory does not hold {filled} samples: "
                "the file is damaged, load an earlier one or start again"
            )
        self._columns, self._layout = dict(state["columns"]), {}
        self._allocate(_layout_of(state["columns"]))
        self.seen = state["seen"]
        self._rng.set_state(state["rng"])

    def filled(self, state: Mapping[str, Any]) -> int:
        """Return the number of samples that a saved state must hold."""
        return min(int(state["seen"]), self.capacity)

    def _is_wider(self, name: str, layout: Layout) -> bool:
        """Return whether a batch of `layout` has longer vectors of the dtype of the column."""
        (shape, dtype), (stored, stored_dtype) = layout[name], self._layout.get(name, layout[name])
        return dtype == stored_dtype and len(shape) == len(stored) == 1 and shape > stored

    def _allocate(self, layout: Layout) -> None:
        """Replace columns by new ones of `layout` that begin with the rows of the old ones."""
        for name, (shape, dtype) in layout.items():
            old = self._columns.get(name, torch.empty(0, *shape))
            # Writing zeros makes the system commit the pages now.
            new = torch.empty((self.capacity, *shape), dtype=dtype, device=old.device).zero_()
            new[tuple(map(slice, old.shape))] = old
            self._columns[name] = new
        self._layout = self._layout | layout


def _columns_of(batch: Batch) -> dict[str, Tensor]:
    if "x" in batch.extra or "y" in batch.extra:
        raise SteradError("an extra column is named x or y, which are reserved: rename it")
    return {"x": batch.x, "y": batch.y, **batch.extra}


def _layout_of(columns: Mapping[str, Tensor]) -> Layout:
    """Return the layout in which columns are stored: images (n, c, h, w) as uint8."""
    layout: Layout = {}
    for name, values in columns.items():
        is_image = name == "x" and values.ndim == 4 and values.is_floating_point()
        layout[name] = tuple(values.shape[1:]), torch.uint8 if is_image else values.dtype
    return layout


def _format(layout: Layout) -> str:
    return ", ".join(
        f"{name} {shape} {str(dtype).removeprefix('torch.')}"
        for name, (shape, dtype) in layout.items()
    )


def draw_distinct(n: int, below: int, rng: torch.Generator) -> Tensor:
    """Return `n` distinct integers from 0 to `below` - 1, in random order: (n,) int64.

    If `below` is large, repeated draws are discarded, so that the cost depends on n alone.
    """
    if below < 4 * n:
        return torch.randperm(below, generator=rng)[:n]
    found: dict[int, None] = {}
    while len(found) < n:
        found |= dict.fromkeys(torch.randint(below, (2 * n,), generator=rng).tolist())
    return torch.tensor(list(found)[:n], dtype=torch.int64)
