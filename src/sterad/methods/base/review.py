"""The review trick: after each task, one pass over the memory with small steps.

Zheda Mai, Ruiwen Li, Jihwan Jeong, David Quispe, Hyunwoo Kim, Scott Sanner: Online Continual
Learning in Image Classification: An Empirical Survey. Neurocomputing 469, 2022,
https://arxiv.org/abs/2101.10423
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sterad.memory import SlotMemory

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay

GRADIENT_DIVISOR = 10
"""Divisor of the gradients of a review."""


def review(learner: "Replay") -> None:
    """Take a step on each random batch of the memory, with gradients divided by 10.

    The loss is that of a stream batch alone; the last, partial batch is left out.
    """
    memory, size = learner.memory, learner.config.memory_batch
    assert isinstance(memory, SlotMemory)
    if not len(memory):
        return
    recorded, learner.sample_losses = learner.sample_losses, None
    for slots in shuffled_slots(len(memory), size, learner.rng["review"]):
        loss = learner.virtual_loss(memory.read(slots))
        learner.take_step(loss / GRADIENT_DIVISOR)
        for addition in learner.additions:
            addition.after_step(learner)
    learner.sample_losses = recorded


def shuffled_slots(count: int, size: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Yield `count` slots in random batches of `size`, without the last partial batch.

    If there are fewer slots than `size`, all of them are one batch.
    """
    size = min(size, count)
    order = torch.randperm(count, generator=rng)
    yield from order[: count // size * size].view(-1, size)
