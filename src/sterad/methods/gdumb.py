"""GDumb: store a balanced sample of the stream, and learn from it only when asked.

Ameya Prabhu, Philip H. S. Torr, Puneet K. Dokania: GDumb: A Simple Approach that Questions Our
Progress in Continual Learning. ECCV 2020

For each stream batch: offer it to the greedy balanced memory. At each consolidation:
  1. draw a fresh network;
  2. for each epoch: cross-entropy of raw logits on random batches of the memory, one view each,
     gradients clipped, at a learning rate of its own: a tenth at first, then cosines that restart
     after 1, 2, 4, 8, ... epochs.
A method that comes close to it has learned little from the stream.

What differs from the released code: its memory is a plain reservoir, this one is balanced; logits
are raw (there scaled to unit length, which caps what they can say); every image is shifted by an
offset of its own; a memory smaller than a batch is one batch. From the paper: no CutMix.
"""

import math
from dataclasses import dataclass

from sterad.memory import GreedyBalanced, Memory
from sterad.methods.from_scratch import FromScratch, FromScratchConfig
from sterad.methods.learner import METHODS
from sterad.seeds import generator
from sterad.validation import BatchSize, Count, NonNegative, Positive


@dataclass(frozen=True)
class GDumbConfig(FromScratchConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.05
    """Maximum learning rate, used at each restart; the first epoch uses a tenth of it."""
    min_lr: Positive = 5e-4
    """Minimum learning rate of the cosine schedule."""
    weight_decay: NonNegative = 1e-6
    clip: Positive | None = 10.0
    memory_batch: BatchSize = 16
    """Number of memory images per training step."""
    epochs: Count = 30
    augmentation: str = "partial"
    head: str = "mlp"


@METHODS.register("gdumb")
class GDumb(FromScratch):
    """A greedy balanced memory, and a network that is trained on it from scratch."""

    Config = GDumbConfig
    config: GDumbConfig

    def make_memory(self) -> Memory:
        """Return an empty balanced memory."""
        return GreedyBalanced(self.problem.memory, generator(self.problem.seed, "memory"))

    def rate(self, epoch: int) -> float:
        """Return a tenth of the learning rate at first, then that of the cosine restarts."""
        if epoch == 0:
            return self.config.lr / 10
        return restarts(epoch - 1, self.config.lr, self.config.min_lr)


def restarts(epoch: int, highest: float, least: float) -> float:
    """Return the learning rate of cosines that restart after 1, 2, 4, 8, ... epochs.

    >>> [round(restarts(epoch, 0.05, 5e-4), 5) for epoch in range(7)]
    [0.05, 0.05, 0.02525, 0.05, 0.04275, 0.02525, 0.00775]
    """
    length = 1 << (epoch + 1).bit_length() - 1
    passed = (epoch + 1 - length) / length
    return least + (highest - least) * (1 + math.cos(math.pi * passed)) / 2
