"""Copies of a user's memory, and checks of what memories and retrievals return."""

from copy import deepcopy
from typing import Any

import torch

from sterad.errors import SteradError
from sterad.memory.memory import Memory, find_missing
from sterad.memory.retrieval import LossRise, RandomRetrieval, Retrieval
from sterad.streams import Batch


def copy_prototype(memory: Any, rng: torch.Generator) -> Memory:
    """Return an empty copy of a user's memory that draws from `rng`, so that one serves many runs.

    A memory without the method `start` keeps its own source of randomness.
    """
    if problem := find_missing(memory):
        raise SteradError(
            f"the memory {type(memory).__name__} {problem}; extend sterad.memory.SlotMemory, "
            "for example"
        )
    if len(memory):
        raise SteradError(
            f"the memory {type(memory).__name__} already holds {len(memory)} samples: give an "
            "empty one, which is copied for each learner"
        )
    try:
        copied: Any = deepcopy(memory)
    except (TypeError, RuntimeError) as error:
        raise SteradError(
            f"the memory {type(memory).__name__} cannot be copied ({error}): it is copied for each "
            "learner, so keep only what deepcopy accepts"
        ) from error
    if hasattr(copied, "start"):
        copied.start(rng)
    own: Memory = copied
    return own


def check_size(memory: Memory, capacity: int) -> None:
    """Refuse a memory that holds more samples than its capacity."""
    if len(memory) > capacity and getattr(memory, "is_bounded", True):
        raise SteradError(
            f"the memory {type(memory).__name__} holds {len(memory)} samples and its capacity is "
            f"{capacity}: its update must replace samples when it is full"
        )


def retrieve_checked(
    retrieval: Retrieval, memory: Memory, n: int, batch: Batch, loss_rise: LossRise
) -> Batch:
    """Return what a retrieval chooses; refuse more samples than were requested."""
    retrieved = retrieval.retrieve(memory, n, batch, loss_rise)
    # The random retrieval only passes on what the memory returns.
    source = memory if isinstance(retrieval, RandomRetrieval) else retrieval
    if not isinstance(retrieved, Batch):
        raise SteradError(
            f"{type(source).__name__} returned {type(retrieved).__name__}: return a Batch"
        )
    if len(retrieved) > n:
        raise SteradError(
            f"{type(source).__name__} returned {len(retrieved)} samples where {n} were requested: "
            f"return at most {n}"
        )
    return retrieved
