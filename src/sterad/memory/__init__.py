"""Stage 3: what is kept of the stream."""

from sterad.memory.columns import Columns
from sterad.memory.everything import Everything
from sterad.memory.greedy_balanced import GreedyBalanced
from sterad.memory.held import Held
from sterad.memory.memory import MEMORIES, Memory
from sterad.memory.nothing import Nothing
from sterad.memory.reservoir import Reservoir

__all__ = [
    "MEMORIES",
    "Columns",
    "Everything",
    "GreedyBalanced",
    "Held",
    "Memory",
    "Nothing",
    "Reservoir",
]
