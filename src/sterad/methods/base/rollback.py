"""Rollback: bring a learner back to its state before a batch that would have destroyed it."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from sterad.memory import SlotMemory
from sterad.methods.base.learner import Learner
from sterad.methods.base.replay import Replay


class Rollback:
    """What a batch changes before the step that fails: not the weights, and not the memory.

    A batch with a new class, which widens the head, and one that is learned in several steps may
    change everything: then the complete state is copied.
    """

    def __init__(self, learner: Learner, labels: Tensor) -> None:
        """Copy what learning from a batch with these labels may change."""
        self.learner = learner
        is_known = bool(torch.isin(labels, learner.seen).all())
        inner = learner.inner  # a frozen encoder in front of it does not change
        if isinstance(inner, Replay) and is_known and inner.config.memory_iterations == 1:
            self.state: dict[str, Any] = {}
            self.images = inner.engine.images
            self.buffers = [buffer.clone() for buffer in inner.network.buffers()]
            self.rng = [(rng, rng.get_state()) for rng in _generators(inner)]
            self.tasks = inner.tasks and inner.tasks.state_dict()
        else:
            self.state = deepcopy(learner.state_dict())

    def restore(self, build: Callable[[], Learner]) -> Learner:
        """Return a learner in the earlier state; `build` makes a new one where it is needed."""
        if self.state:
            rebuilt = build()
            rebuilt.load_state_dict(self.state)
            return rebuilt
        learner = self.learner.inner
        assert isinstance(learner, Replay)
        learner.engine.images = self.images
        learner.engine.drop_gradients()
        for buffer, before in zip(learner.network.buffers(), self.buffers, strict=True):
            buffer.copy_(before)
        for rng, before in self.rng:
            rng.set_state(before)
        if learner.tasks is not None and self.tasks:
            learner.tasks.load_state_dict(self.tasks)
        return self.learner


def _generators(learner: Replay) -> list[torch.Generator]:
    memory = [learner.memory._rng] if isinstance(learner.memory, SlotMemory) else []
    return [*learner.rng.values(), *memory]
