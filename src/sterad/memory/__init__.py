"""Stage 3: memories, the replay buffers of methods."""

from sterad.memory.greedy_balanced import GreedyBalanced
from sterad.memory.memory import MEMORIES, Memory, SlotMemory
from sterad.memory.none_and_everything import Everything, NoMemory
from sterad.memory.reservoir import Reservoir
from sterad.memory.storage import Columns

__all__ = [
    "MEMORIES",
    "Columns",
    "Everything",
    "GreedyBalanced",
    "Memory",
    "NoMemory",
    "Reservoir",
    "SlotMemory",
]
