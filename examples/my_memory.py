"""Your own memory policy: keep the newest samples.

sterad train er --plugin examples/my_memory.py --memory-policy newest
"""

from sterad.memory import MEMORIES, SlotMemory
from sterad.streams import Batch


@MEMORIES.register("newest")
class Newest(SlotMemory):
    """The newest samples: a ring buffer."""

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def update(self, batch: Batch) -> None:
        """Write each sample over the oldest one."""
        self.prepare(batch)
        positions = range(len(batch))
        slots = {(self.seen + position) % self.capacity: position for position in positions}
        self.write(batch, slots)
        self.seen += len(batch)
