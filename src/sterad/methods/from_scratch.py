"""From scratch: what GDumb and joint training share, a fresh network for each consolidation.

The stream is only stored. To consolidate is to train a new network on all that is remembered:
epochs of random batches, the last partial batch of an epoch left out, unless it is the only one.
Its generators come from the seed and the number of samples seen, so the same question has the same
answer whether or not others were asked before; nothing of it is state, and nothing is trained twice
while no further batch has come.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.memory import SlotMemory
from sterad.methods.learner import Learner
from sterad.methods.problem import Problem
from sterad.methods.replay import Replay, ReplayConfig
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.validation import Count


@dataclass(frozen=True)
class FromScratchConfig(ReplayConfig):
    """What all trainings from scratch have."""

    epochs: Count = 20
    """Passes over the memory at each consolidation."""


class FromScratch(Replay):
    """Store the stream; train on the memory when an answer is wanted."""

    Config = FromScratchConfig
    config: FromScratchConfig
    memory: SlotMemory
    answers_at_once: ClassVar[bool] = False

    def __init__(self, config: FromScratchConfig, problem: Problem) -> None:
        """Refuse what has no meaning where the stream is not learned from."""
        if config.teacher != "none" or config.memory_iterations != 1:
            raise SteradError(
                "a method that trains from scratch at each evaluation takes no steps on the "
                "stream: leave teacher=none and memory_iterations=1"
            )
        super().__init__(config, problem)
        self.samples = 0
        """Samples seen."""
        self.trained_after: int | None = None
        """Samples seen before the last training."""

    @abstractmethod
    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""

    def observe(self, batch: Batch) -> None:
        """Only store."""
        self.admit(batch)
        self.remember(batch)
        self.samples += len(batch)

    def widen(self, outputs: int) -> None:
        """Wait for the next network, which will be wide enough."""

    def first_outputs(self) -> int:
        """Return one output a declared or seen class."""
        return max(super().first_outputs(), int(self.seen[-1]) + 1 if len(self.seen) else 1)

    def consolidate(self) -> None:
        """Train a fresh network, unless nothing was observed since the last; fit the classifier."""
        if len(self.memory) == 0:
            raise SteradError("nothing is remembered yet: observe a batch before asking")
        if self.trained_after != self.samples:
            self.train()
        super().consolidate()

    def train(self) -> None:
        """Replace the network by a fresh one that has learned the memory."""
        self.trained_after, seed = None, self.problem.seed
        purposes = ("network", "views", "order")
        self.rng = {name: generator(seed, f"{name} {self.samples}") for name in purposes}
        self.engine = self.make_engine()  # an earlier one's scaler would remember its scale
        for epoch in range(self.config.epochs):
            for group in self.engine.optimizer.param_groups:
                group["lr"] = self.rate(epoch)
            for slots in self.shuffled():
                self.learn(slots)
        self.trained_after = self.samples

    def learn(self, slots: Tensor) -> None:
        """Take a step on the images in some slots of the memory."""
        self.step(self.loss(self.memory.at(slots), self.memory.at(slots[:0])))

    def shuffled(self) -> Iterator[Tensor]:
        """Yield the slots of the memory in random batches for one epoch."""
        size = min(self.config.memory_batch, len(self.memory))
        order = torch.randperm(len(self.memory), generator=self.rng["order"])
        yield from order[: len(order) // size * size].view(-1, size)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of raw logits of everything shown of both batches."""
        return F.cross_entropy(*self.outputs(Batch.joined(retrieved, batch)))

    def forward(self, x: Tensor, unit: bool = False) -> Tensor:
        """Push images on the device through the network in a consolidation and count them."""
        self.consolidation_images += len(x)
        out: Tensor = self.network(x, unit=unit)
        return out

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores as consolidated; refuse if a batch has come since."""
        self.check_trained()
        return super().scores(x)

    def instant_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the trained head; refuse if a batch has come since the training."""
        self.check_trained()
        return super().instant_scores(x)

    def check_trained(self) -> None:
        """Refuse to answer by a network that does not know the memory of now."""
        if self.trained_after != self.samples:
            raise SteradError(
                "this method trains when it consolidates, and has not since the last batch: "
                "consolidate before asking, and leave test_then_train off"
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the memory and what was seen: any network can be trained again from them."""
        return Learner.state_dict(self) | {
            "samples": self.samples,
            "memory": self.memory.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; the next answer needs a consolidation."""
        Learner.load_state_dict(self, state)
        self.samples, self.trained_after = state["samples"], None
        self.memory.load_state_dict(state["memory"])
