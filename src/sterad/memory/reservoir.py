"""Reservoir: every sample of the stream so far is in memory with the same probability.

Algorithm R of J. S. Vitter, "Random Sampling with a Reservoir", ACM Trans. Math. Softw. 11(1),
1985, https://doi.org/10.1145/3147.3165: sample number n, counted from 0, goes to the next free
slot while there is one, and then to slot floor(U (n + 1)), if there is such a slot.
"""

import torch
from torch import Tensor

from sterad.memory.held import Held
from sterad.memory.memory import MEMORIES
from sterad.streams import Batch


@MEMORIES.register("reservoir")
class Reservoir(Held):
    """A uniform sample of all that was offered."""

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


def _last_of_each(values: Tensor) -> Tensor:
    """Return the position of the last occurrence of each value, in the order of the values.

    >>> _last_of_each(torch.tensor([3, 1, 3, 2]))
    tensor([1, 3, 2])
    """
    ordered, positions = values.sort(stable=True)
    last = torch.ones(len(values), dtype=torch.bool)
    torch.ne(ordered[1:], ordered[:-1], out=last[:-1])
    return positions[last]
