"""Joint: train on everything that was seen, with epochs, the upper bound of every table.

Keep every image of the stream, whatever memory the others have. At a consolidation draw a fresh
network and train it for some epochs on all of them: cross-entropy of raw logits over all classes,
one view of each image. It is no online method, and it is worth its price at the end of the stream
only. Nothing was released for it: the optimizer and its settings are ours, chosen on digits.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from sterad.memory import Everything, Memory
from sterad.methods.from_scratch import FromScratch, FromScratchConfig
from sterad.methods.learner import METHODS
from sterad.seeds import generator
from sterad.validation import BatchSize, Count, NonNegative, Positive


@dataclass(frozen=True)
class JointConfig(FromScratchConfig):
    """Our settings: SGD, whose learning rate falls on a cosine over all epochs."""

    lr: Positive = 0.03
    """Learning rate of the first epoch."""
    weight_decay: NonNegative = 5e-4
    memory_batch: BatchSize = 64
    """Number of images per training step."""
    epochs: Count = 20


@METHODS.register("joint", alias=("offline",))
class Joint(FromScratch):
    """Cross-entropy on everything seen, for as many epochs as it takes."""

    Config = JointConfig
    config: JointConfig
    final_only: ClassVar[bool] = True

    def make_memory(self) -> Memory:
        """Keep everything."""
        return Everything(generator(self.problem.seed, "memory"))

    def rate(self, epoch: int) -> float:
        """Return the learning rate on a cosine that would end after the last epoch."""
        return self.config.lr * (1 + math.cos(math.pi * epoch / self.config.epochs)) / 2

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return None: what is kept does not count against any capacity."""
        return None
