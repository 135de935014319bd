"""Memory: the replay buffer of a method, and the base of memories that store samples in slots."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.memory.storage import Columns
from sterad.registry import Registry
from sterad.streams import Batch


class Memory(Protocol):
    """A bounded set of past samples; a method calls `sample` before `update` in each step."""

    @property
    def capacity(self) -> int:
        """Maximum number of samples."""
        ...

    def __len__(self) -> int:
        """Return the number of stored samples."""
        ...

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order, without changing or keeping the batch."""
        ...

    def sample(self, n: int) -> Batch:
        """Return `n` distinct random samples, or all in storage order if it holds fewer."""
        ...

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield all samples in storage order."""
        ...

    def class_counts(self, classes: int) -> Tensor:
        """Return the number of stored samples of each class: (classes,) int64."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as tensors, numbers and dictionaries."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned, so that all later results are equal."""
        ...


def _find_problem(policy: Any) -> str | None:
    """Return why a class cannot be registered as a memory policy."""
    try:
        inspect.signature(policy).bind(1, torch.Generator())
    except (TypeError, ValueError) as error:
        return f"cannot be called with a capacity and a generator ({error}): accept both"
    missing = [name for name in MEMORY_METHODS if not hasattr(policy, name)]
    return f"does not define {', '.join(missing)}: define each" if missing else None


MEMORIES: Registry[Callable[[int, torch.Generator], Memory]] = Registry(
    "memory policy", "sterad.memories", _find_problem
)
MEMORY_METHODS = (
    "__len__",
    "update",
    "sample",
    "everything",
    "class_counts",
    "state_dict",
    "load_state_dict",
)


class SlotMemory(ABC):
    """A memory whose samples occupy the first `len` slots; subclasses implement `update` and `len`.

    `update` calls `self.columns.prepare(batch)`, decides which positions of the batch go to which
    slots, calls `self.columns.write(batch, {slot: position})` and adds `len(batch)` to `self.seen`.
    """

    def __init__(self, capacity: int, rng: torch.Generator) -> None:
        """Hold at most `capacity` samples; `rng` draws which are kept and which are sampled."""
        self.capacity = capacity
        self.seen = 0
        """Number of samples offered so far."""
        self._rng = rng
        self.columns = Columns(capacity)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""

    def at(self, slots: Tensor) -> Batch:
        """Return the samples in `slots`, each below `len`."""
        return self.columns.read(slots)

    def sample(self, n: int) -> Batch:
        """Return `n` distinct random samples, or all in storage order if it holds fewer."""
        if n < 0:
            raise SteradError(f"cannot draw {n} samples from the memory: give 0 or more")
        if n > len(self):
            return self.columns.read(torch.arange(len(self)))
        return self.columns.read(draw_distinct(n, len(self), self._rng))

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield all samples in storage order."""
        for start in range(0, len(self), batch_size):
            yield self.columns.read(torch.arange(start, min(start + batch_size, len(self))))

    def class_counts(self, classes: int) -> Tensor:
        """Return the number of stored samples of each class: (classes,) int64."""
        return torch.bincount(self.columns.labels(len(self)), minlength=classes)

    def state_dict(self) -> dict[str, Any]:
        """Return the stored samples, the number of samples offered, and the generator state."""
        return {
            "capacity": self.capacity,
            "seen": self.seen,
            "columns": self.columns.state_dict(len(self)),
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
        filled = self.filled(state)
        lengths = {len(column) for column in state["columns"].values()} or {0}
        if lengths != {filled}:
            raise SteradError(
                f"a column of the saved memory does not hold {filled} samples: "
                "the file is damaged, load an earlier one or start again"
            )
        self.columns.load_state_dict(state["columns"])
        self.seen = state["seen"]
        self._rng.set_state(state["rng"])

    def filled(self, state: Mapping[str, Any]) -> int:
        """Return the number of samples that a saved state must hold."""
        return min(int(state["seen"]), self.capacity)


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
