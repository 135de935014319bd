"""Joint: train on all images seen for several epochs, the upper bound of every table.

Store every image of the stream, whatever the capacity of the memory. `consolidate` draws a new
network and trains it on all of them: cross-entropy of raw logits over all classes, one view of each
image. It is not an online method, and it is evaluated only at the end of the stream because that is
expensive. Nothing was released for it: the optimizer and its settings are ours, chosen on digits.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from sterad.methods.base.from_scratch import FromScratch, FromScratchConfig
from sterad.methods.base.learner import METHODS, Cost
from sterad.validation import OMIT_DEFAULT_FROM_ID, BatchSize, Count, NonNegative, Positive


@dataclass(frozen=True)
class JointConfig(FromScratchConfig):
    """Our settings: SGD with a cosine schedule over all epochs."""

    lr: Positive = 0.03
    """Learning rate of the first epoch."""
    weight_decay: NonNegative = 5e-4
    memory_batch: BatchSize = 64
    """Number of images per training step."""
    epochs: Count = 20
    memory_policy: str = field(default="everything", metadata=OMIT_DEFAULT_FROM_ID)


@METHODS.register("joint", alias=("offline",))
class Joint(FromScratch):
    """Cross-entropy on everything seen, for several epochs."""

    Config = JointConfig
    config: JointConfig
    trains = "at-end"

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the epochs over all samples of the stream for a consolidation."""
        keeps_all = config.memory_policy == "everything"
        return super().cost(config, batch_size, int(samples) if keeps_all else memory, samples)

    def rate(self, epoch: int) -> float:
        """Return the learning rate of a cosine schedule over all epochs."""
        return self.config.lr * (1 + math.cos(math.pi * epoch / self.config.epochs)) / 2

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return None: what is stored does not count against a capacity."""
        return None
