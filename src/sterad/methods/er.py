"""ER: experience replay, the plainest way to remember and hard to beat.

Arslan Chaudhry, Marcus Rohrbach, Mohamed Elhoseiny, Thalaiyasingam Ajanthan, Puneet K. Dokania,
Philip H. S. Torr, Marc'Aurelio Ranzato: On Tiny Episodic Memories in Continual Learning. 2019,
https://arxiv.org/abs/1902.10486

For each stream batch B:
  1. retrieve M from memory; no step while the memory is empty;
  2. draw one random view of M ∪ B;
  3. step on the mean cross-entropy of the raw logits over all outputs;
  4. offer B to the reservoir.

Differences from the released code ("there"): several views do not replace the linear head (there by
a projection of 128 outputs), and predictions are among the classes seen.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from sterad.methods.base.learner import METHODS
from sterad.methods.base.parts import ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import BelowOne, NonNegative, Positive


@dataclass(frozen=True)
class ERConfig(ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.01
    momentum: BelowOne = 0.9
    weight_decay: NonNegative = 1e-4


@METHODS.register("er")
class ER(Replay):
    """Cross-entropy on memory and stream together."""

    Config = ERConfig
    trains_without_memory = False

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of all views of both batches."""
        logits, labels = self.forward_views(Batch.concatenate(retrieved, batch))
        self.record_losses(F.cross_entropy, logits, labels)
        return F.cross_entropy(logits, labels)
