"""Fine-tuning: learn from each batch and store nothing, the lower bound of every table.

For each stream batch: one augmented view, cross-entropy of raw logits over all classes, one step.
The released code scales logits to unit length, which bounds the posteriors; these are raw, unless
`unit_logits` is set.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from sterad.methods.base.learner import METHODS, Cost
from sterad.methods.base.parts import ReplayConfig, UnitLogitsConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import OMIT_DEFAULT_FROM_ID, BelowOne, Positive


@dataclass(frozen=True)
class FinetuneConfig(UnitLogitsConfig, ReplayConfig):
    """The best learning rate for single tasks of digits: studies/finetune-digits.toml."""

    lr: Positive = 0.03
    momentum: BelowOne = 0.0
    head: str = "mlp"
    memory_policy: str = field(default="none", metadata=OMIT_DEFAULT_FROM_ID)


@METHODS.register("finetune")
class Finetune(Replay):
    """Cross-entropy on the stream alone."""

    Config = FinetuneConfig
    replays = False

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the cost without retrieved images."""
        return super().cost(replace(config, memory_batch=0), batch_size, memory, samples)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of all views of the stream batch."""
        return F.cross_entropy(*self.forward_views(batch))
