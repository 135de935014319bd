"""MemorySubset: some samples of a memory, from which any retrieval draws as from a memory."""

from torch import Tensor

from sterad.errors import SteradError
from sterad.memory.memory import SlotMemory
from sterad.streams import Batch


class MemorySubset(SlotMemory):
    """The samples in some slots of a memory, in their order; it shares the memory's generator.

    >>> from sterad.memory import Reservoir
    >>> import torch
    >>> memory = Reservoir(9, torch.Generator().manual_seed(0))
    >>> memory.update(Batch(torch.rand(4, 2), torch.tensor([5, 6, 7, 8])))
    >>> sorted(MemorySubset(memory, torch.tensor([1, 3])).sample(2).y.tolist())
    [6, 8]
    """

    def __init__(self, memory: SlotMemory, slots: Tensor) -> None:
        """Read the samples of `memory` in `slots`: (n,) int64."""
        super().__init__(max(len(slots), 1), memory.rng)
        self.memory, self.slots = memory, slots

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def labels(self) -> Tensor:
        """Labels of the samples: (len,) int64."""
        return self.memory.labels[self.slots] if len(self) else self.slots

    def read(self, slots: Tensor) -> Batch:
        """Return the samples at some positions of the subset, each below `len`."""
        return self.memory.read(self.slots[slots])

    def update(self, batch: Batch) -> None:
        """Raise: a subset only reads."""
        raise SteradError("a subset of a memory stores nothing: update the memory itself")
