"""Stage 3: memories, the replay buffers of methods."""

from sterad.memory.baselines import Everything, NoMemory
from sterad.memory.columns import Columns
from sterad.memory.greedy_balanced import GreedyBalanced
from sterad.memory.memory import MEMORIES, Memory, SlotMemory
from sterad.memory.reservoir import Reservoir

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
