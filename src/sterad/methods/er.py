"""ER: experience replay, the plainest way to remember and hard to beat.

Arslan Chaudhry, Marcus Rohrbach, Mohamed Elhoseiny, Thalaiyasingam Ajanthan, Puneet K. Dokania,
Philip H. S. Torr, Marc'Aurelio Ranzato: On Tiny Episodic Memories in Continual Learning. 2019,
https://arxiv.org/abs/1902.10486

For each stream batch B:
  1. retrieve M from memory; nothing is learned while the memory is empty;
  2. show one random view of M ∪ B;
  3. step on the mean cross-entropy of the raw logits over all outputs;
  4. offer B to the reservoir.

What differs from the released code: with several views the classifier stays the same linear layer,
as wide as there are classes (there it became a projection of 128 outputs), and answers are among
the classes seen.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from sterad.methods.learner import METHODS
from sterad.methods.replay import Replay, ReplayConfig
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
        """Return the mean cross-entropy of everything shown of both batches."""
        p, labels = self.outputs(Batch.joined(retrieved, batch))
        if self.records_sample_losses:
            self.sample_losses = F.cross_entropy(p.detach(), labels, reduction="none"), labels
        return F.cross_entropy(p, labels)
