"""Held: what every memory does with the samples in its slots, whatever rule put them there."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.memory.columns import Columns
from sterad.streams import Batch


class Held(ABC):
    """The first `len` slots of named columns: drawn from, listed, counted and saved."""

    def __init__(self, capacity: int, rng: torch.Generator) -> None:
        """Hold at most `capacity` samples; `rng` decides which stay and which are drawn."""
        self.capacity = capacity
        self.seen = 0
        """Samples offered so far."""
        self._rng = rng
        self._columns = Columns(capacity)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""

    def at(self, slots: Tensor) -> Batch:
        """Return the samples in `slots`, each below `len`."""
        return self._columns.read(slots)

    def sample(self, n: int) -> Batch:
        """Return `n` distinct samples at random, or all in storage order when it holds fewer."""
        if n < 0:
            raise SteradError(f"{n} samples were asked of the memory: ask for 0 or more")
        if n > len(self):
            return self._columns.read(torch.arange(len(self)))
        return self._columns.read(distinct(n, len(self), self._rng))

    def everything(self, batch_size: int = 500) -> Iterator[Batch]:
        """Yield all samples in storage order."""
        for start in range(0, len(self), batch_size):
            yield self._columns.read(torch.arange(start, min(start + batch_size, len(self))))

    def class_counts(self, classes: int) -> Tensor:
        """Return how many samples of each class it holds: (classes,) int64."""
        return torch.bincount(self._columns.labels(len(self)), minlength=classes)

    def state_dict(self) -> dict[str, Any]:
        """Return everything: what is held, what was offered, and the generator."""
        return {
            "capacity": self.capacity,
            "seen": self.seen,
            "columns": self._columns.state_dict(len(self)),
            "rng": self._rng.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue, bit for bit, where `state` was taken."""
        missing = set(self.state_dict()) - set(state)
        if missing:
            raise SteradError(
                f"the saved memory lacks {', '.join(sorted(missing))}: "
                f"load the state of a {type(self).__name__}, or start again"
            )
        if state["capacity"] != self.capacity:
            raise SteradError(
                f"the saved memory has capacity {state['capacity']} and this one "
                f"{self.capacity}: make one of the saved capacity"
            )
        filled = self.filled(state)
        lengths = {len(column) for column in state["columns"].values()} or {0}
        if lengths != {filled}:
            raise SteradError(
                f"a column of the saved memory does not hold {filled} samples: "
                "the file is damaged, load an earlier one or start again"
            )
        self._columns.load_state_dict(state["columns"])
        self.seen = state["seen"]
        self._rng.set_state(state["rng"])

    def filled(self, state: Mapping[str, Any]) -> int:
        """Return how many samples a saved state must hold: all offered, while there is room."""
        return min(int(state["seen"]), self.capacity)


def distinct(n: int, below: int, rng: torch.Generator) -> Tensor:
    """Return `n` different numbers from 0 to `below` - 1, in random order: (n,) int64.

    Numbers that came before are passed over, so that the cost hangs on n alone.
    """
    if below < 4 * n:
        return torch.randperm(below, generator=rng)[:n]
    found: dict[int, None] = {}
    while len(found) < n:
        found |= dict.fromkeys(torch.randint(below, (2 * n,), generator=rng).tolist())
    return torch.tensor(list(found)[:n], dtype=torch.int64)
