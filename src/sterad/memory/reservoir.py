"""Reservoir: every sample of the stream so far is in memory with the same probability.

Algorithm R of J. S. Vitter, "Random Sampling with a Reservoir", ACM Trans. Math. Softw. 11(1),
1985, https://doi.org/10.1145/3147.3165: sample number n, counted from 0, goes to the next free
slot while there is one, and then to slot floor(U (n + 1)), if there is such a slot.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.memory.columns import Columns
from sterad.memory.memory import MEMORIES
from sterad.streams import Batch


@MEMORIES.register("reservoir")
class Reservoir:
    """A uniform sample of all that was offered."""

    def __init__(self, capacity: int, rng: torch.Generator) -> None:
        """Hold at most `capacity` samples; `rng` decides which stay and which are drawn."""
        self.capacity = capacity
        self.seen = 0
        """Samples offered so far."""
        self._rng = rng
        self._columns = Columns(capacity)

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def update(self, batch: Batch) -> None:
        """Offer each sample of `batch` once, in order."""
        if not len(batch):
            return
        self._columns.admit(batch)
        uniform = torch.rand(len(batch), generator=self._rng, dtype=torch.float64)
        number = torch.arange(self.seen, self.seen + len(batch))
        slots = torch.where(number < self.capacity, number, (uniform * (number + 1)).long())
        chosen = _last_of_each(slots)
        chosen = chosen[slots[chosen] < self.capacity]
        self._columns.write(batch, chosen, slots[chosen])
        self.seen += len(batch)

    def sample(self, n: int) -> Batch:
        """Return `n` distinct samples at random, or all in storage order when it holds fewer."""
        if n < 0:
            raise SteradError(f"{n} samples were asked of the memory: ask for 0 or more")
        if n > len(self):
            return self._columns.read(torch.arange(len(self)))
        return self._columns.read(torch.randperm(len(self), generator=self._rng)[:n])

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
        missing = {"capacity", "seen", "columns", "rng"} - set(state)
        if missing:
            raise SteradError(
                f"the saved memory lacks {', '.join(sorted(missing))}: "
                "load the state of a reservoir, or start again"
            )
        if state["capacity"] != self.capacity:
            raise SteradError(
                f"the saved memory has capacity {state['capacity']} and this one "
                f"{self.capacity}: make one of the saved capacity"
            )
        filled = min(state["seen"], self.capacity)
        lengths = {len(column) for column in state["columns"].values()} or {0}
        if lengths != {filled}:
            raise SteradError(
                f"a column of the saved memory does not hold {filled} samples: "
                "the file is damaged, load an earlier one or start again"
            )
        self._columns.load_state_dict(state["columns"])
        self.seen = state["seen"]
        self._rng.set_state(state["rng"])


def _last_of_each(values: Tensor) -> Tensor:
    """Return the position of the last occurrence of each value, in the order of the values.

    >>> _last_of_each(torch.tensor([3, 1, 3, 2]))
    tensor([1, 3, 2])
    """
    ordered, positions = values.sort(stable=True)
    last = torch.ones(len(values), dtype=torch.bool)
    torch.ne(ordered[1:], ordered[:-1], out=last[:-1])
    return positions[last]
