"""GDumb: store a balanced sample of the stream and train on it from scratch to predict.

Ameya Prabhu, Philip H. S. Torr, Puneet K. Dokania: GDumb: A Simple Approach that Questions Our
Progress in Continual Learning. ECCV 2020

For each stream batch: offer it to the greedy balanced memory. At each consolidation:
  1. draw a new network;
  2. for each epoch: cross-entropy of raw logits on random batches of the memory, one view each,
     gradients clipped, with a learning rate per epoch: a tenth at first, then cosines that
     restart after 1, 2, 4, 8, ... epochs.
A method that is only as good has gained little from the stream.

Differences from the released code ("there"): its memory is a plain reservoir, this one is balanced;
logits are raw unless `unit_logits` is set (there scaled to unit length, which bounds the
posteriors); every image has its own
random shift; a memory smaller than a batch is one batch. From the paper: no CutMix.
"""

import math
from dataclasses import dataclass, field

from sterad.methods.base.from_scratch import FromScratch, FromScratchConfig
from sterad.methods.base.learner import METHODS
from sterad.methods.base.parts import UnitLogitsConfig
from sterad.validation import OMIT_DEFAULT_FROM_ID, BatchSize, Count, NonNegative, Positive


@dataclass(frozen=True)
class GDumbConfig(UnitLogitsConfig, FromScratchConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.05
    """Maximum learning rate, at each restart; the first epoch has a tenth of it."""
    min_lr: Positive = 5e-4
    """Minimum of the cosines."""
    weight_decay: NonNegative = 1e-6
    clip: Positive | None = 10.0
    memory_batch: BatchSize = 16
    """Number of memory images per training step."""
    epochs: Count = 30
    augmentation: str = "partial"
    head: str = "mlp"
    memory_policy: str = field(default="greedy-balanced", metadata=OMIT_DEFAULT_FROM_ID)


@METHODS.register("gdumb")
class GDumb(FromScratch):
    """A greedy balanced memory and a network that is trained on it from scratch."""

    Config = GDumbConfig
    config: GDumbConfig

    def rate(self, epoch: int) -> float:
        """Return a tenth of the learning rate at first, then the cosines with restarts."""
        if epoch == 0:
            return self.config.lr / 10
        return restarting_cosine(epoch - 1, self.config.lr, self.config.min_lr)


def restarting_cosine(epoch: int, high: float, low: float) -> float:
    """Return the learning rate of cosines that restart after 1, 2, 4, 8, ... epochs.

    >>> [round(restarting_cosine(epoch, 0.05, 5e-4), 5) for epoch in range(7)]
    [0.05, 0.05, 0.02525, 0.05, 0.04275, 0.02525, 0.00775]
    """
    length = 1 << (epoch + 1).bit_length() - 1
    passed = (epoch + 1 - length) / length
    return low + (high - low) * (1 + math.cos(math.pi * passed)) / 2
