"""Stage 3: what is kept of the stream."""

from sterad.memory.columns import Columns
from sterad.memory.memory import MEMORIES, Memory
from sterad.memory.nothing import Nothing
from sterad.memory.reservoir import Reservoir

__all__ = ["MEMORIES", "Columns", "Memory", "Nothing", "Reservoir"]
