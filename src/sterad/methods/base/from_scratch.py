"""Training from scratch, for GDumb and joint training: a new network for each consolidation.

The stream is only stored. `consolidate` trains a new network on the whole memory: epochs of random
batches, without the last partial batch of an epoch unless it is the only one. Its generators depend
on the seed and the number of samples seen, so the result does not depend on earlier consolidations;
nothing of it is state, and no network is trained twice without a new batch.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network
from sterad.engine.passes import Passes
from sterad.errors import SteradError
from sterad.memory import SlotMemory
from sterad.memory.checks import check_size
from sterad.methods.base.learner import Cost, Learner, Problem, TrainingTime
from sterad.methods.base.parts import ADDITIONS, Parts, ReplayConfig, load_memory
from sterad.methods.base.replay import Replay
from sterad.methods.base.review import shuffled_slots
from sterad.saved_state import bytes_of, check_count
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.validation import Count


@dataclass(frozen=True)
class FromScratchConfig(ReplayConfig):
    """The fields of methods that train from scratch."""

    epochs: Count = 20
    """Passes over the memory at each consolidation."""


class FromScratch(Replay):
    """Stores the stream and trains on the memory in `consolidate`."""

    Config = FromScratchConfig
    config: FromScratchConfig
    memory: SlotMemory
    replays: ClassVar[bool] = False
    trains: TrainingTime = "at-evaluation"

    def __init__(self, config: FromScratchConfig, problem: Problem, parts: Parts) -> None:
        """Refuse fields that only concern steps on the stream, and memories without slots."""
        if config.teacher != "none" or config.memory_iterations != 1 or config.review:
            raise SteradError(
                "a method that trains from scratch at each evaluation takes no steps on the "
                "stream: leave teacher=none, memory_iterations=1 and review=false"
            )
        if on := [one.switch for one in ADDITIONS if one.is_on(config)]:
            raise SteradError(
                f"{on[0]}={getattr(config, on[0])} adds to the steps on the stream, and a method "
                "that trains from scratch takes none: leave it out"
            )
        if not isinstance(parts.memory, SlotMemory):
            raise SteradError(
                f"a method that trains from scratch needs a memory to train on, not "
                f"{type(parts.memory).__name__}: use memory_policy=reservoir, for example"
            )
        super().__init__(config, problem, parts)
        self.samples = 0
        """Number of samples seen."""
        self.trained_after: int | None = None
        """Number of samples seen before the last training."""

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return no cost per step, and the epochs over the memory for a consolidation."""
        encoded = super().cost(config, batch_size, memory, samples).consolidation
        return Cost(0, config.epochs * memory + encoded)

    @property
    def images(self) -> int:
        """Images passed through the network for the stream: none."""
        return 0

    @property
    def passes(self) -> Sequence[tuple[Network, Passes]]:
        """The passes of all consolidations."""
        return [(self.network, self.consolidation_passes)]

    @property
    def state_bytes(self) -> int:
        """Bytes of the memory and of the network that predicts until the next training."""
        return super().state_bytes + bytes_of(self.network.state_dict())

    @abstractmethod
    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, from 0."""

    def observe(self, batch: Batch) -> None:
        """Store the batch."""
        self.see(batch)
        self.remember(batch)
        check_size(self.memory, self._capacity)
        self.samples += len(batch)

    def widen(self, outputs: int) -> None:
        """Do nothing: the next network is wide enough."""

    def consolidate(self) -> None:
        """Train a new network if there was a batch since the last one, and fit the classifier."""
        if len(self.memory) == 0:
            raise SteradError("the memory is empty: observe a batch before you evaluate")
        if self.trained_after != self.samples:
            self.train()
        super().consolidate()

    def train(self) -> None:
        """Replace the network by a new one and train it on the memory."""
        self.trained_after, seed = None, self.problem.seed
        purposes = ("network", "views", "order")
        self.rng = {name: generator(seed, f"{name} {self.samples}") for name in purposes}
        # A new engine as well: the gradient scaler of an earlier one would keep its scale.
        network = self.make_network(max(self.problem.classes or 1, int(self.seen[-1]) + 1))
        self.engine = self.parts.engine(network, self.problem.execution, self.parts.optimizer)
        groups = self.engine.optimizer.param_groups
        scales = [group["lr"] / self.config.lr for group in groups]  # of an encoder's own rate
        for epoch in range(self.config.epochs):
            for group, scale in zip(groups, scales, strict=True):
                group["lr"] = self.rate(epoch) * scale
            for slots in self.shuffle():
                self.learn(slots)
        self.consolidation_images += self.engine.images
        self.consolidation_passes.add(self.engine.passes)
        self.trained_after = self.samples

    def learn(self, slots: Tensor) -> None:
        """Take a step on the images in some slots of the memory."""
        self.step(self.loss(self.memory.read(slots), self.memory.read(slots[:0])))

    def shuffle(self) -> Iterator[Tensor]:
        """Return the slots of the memory in random batches for one epoch."""
        return shuffled_slots(len(self.memory), self.config.memory_batch, self.rng["order"])

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of the raw logits of all views of both batches."""
        return F.cross_entropy(*self.forward_views(Batch.concatenate(retrieved, batch)))

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores as of the last consolidation, which must be after the last batch."""
        self.check_trained()
        return super().scores(x)

    def immediate_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the trained head, which must have been trained after the last batch."""
        self.check_trained()
        return super().immediate_scores(x)

    def check_trained(self) -> None:
        """Refuse predictions of a network that was trained before the last batch."""
        if self.trained_after != self.samples:
            raise SteradError(
                "this method trains in consolidate(), which was not called since the last batch: "
                "call it before you predict, and leave test_then_train off"
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the memory and the classes seen: every network can be trained again from them."""
        return Learner.state_dict(self) | {
            "samples": self.samples,
            "memory": self.memory.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned; the next prediction needs consolidate()."""
        Learner.load_state_dict(self, state)
        check_count(state["samples"], "samples")
        load_memory(self.memory, state["memory"], self.seen, self.problem.input_shape)
        self.samples, self.trained_after = state["samples"], None
