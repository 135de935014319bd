"""Stage 3: memories, the replay buffers of methods, and what is retrieved from them."""

from sterad.memory.balanced import ClassBalanced, Ring
from sterad.memory.memory import MEMORIES, Memory, SlotMemory
from sterad.memory.policies import Everything, GreedyBalanced, NoMemory, Reservoir
from sterad.memory.retrieval import (
    RETRIEVALS,
    ClassBalancedRetrieval,
    MaximallyInterfered,
    RandomRetrieval,
    Retrieval,
)
from sterad.memory.subset import MemorySubset

__all__ = [
    "MEMORIES",
    "RETRIEVALS",
    "ClassBalanced",
    "ClassBalancedRetrieval",
    "Everything",
    "GreedyBalanced",
    "MaximallyInterfered",
    "Memory",
    "MemorySubset",
    "NoMemory",
    "RandomRetrieval",
    "Reservoir",
    "Retrieval",
    "Ring",
    "SlotMemory",
]
