"""Stage 3: memories, the replay buffers of methods."""

from sterad.memory.memory import MEMORIES, Memory, SlotMemory
from sterad.memory.policies import Everything, GreedyBalanced, NoMemory, Reservoir

__all__ = [
    "MEMORIES",
    "Everything",
    "GreedyBalanced",
    "Memory",
    "NoMemory",
    "Reservoir",
    "SlotMemory",
]
