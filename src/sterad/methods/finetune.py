"""Fine-tuning: learn each batch as it comes and keep nothing, the lower bound of every table.

For each stream batch: one augmented view, cross-entropy on raw logits over all classes, one step.
The released code scales the logits to unit length, which caps what they can say; these are raw.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from sterad.memory import Memory, NoMemory
from sterad.methods.learner import METHODS
from sterad.methods.replay import Replay, ReplayConfig
from sterad.streams import Batch
from sterad.validation import BelowOne, Positive


@dataclass(frozen=True)
class FinetuneConfig(ReplayConfig):
    """Step sizes that learn the task at hand best on digits: studies/finetune-digits.toml."""

    lr: Positive = 0.03
    momentum: BelowOne = 0.0
    head: str = "mlp"


@METHODS.register("finetune")
class Finetune(Replay):
    """Cross-entropy on the stream alone."""

    Config = FinetuneConfig

    def make_memory(self) -> Memory:
        """Keep nothing."""
        return NoMemory()

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of everything shown of the stream batch."""
        return F.cross_entropy(*self.outputs(batch))
