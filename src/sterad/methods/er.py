"""ER: experience replay, the plainest way to remember and hard to beat.

Arslan Chaudhry, Marcus Rohrbach, Mohamed Elhoseiny, Thalaiyasingam Ajanthan, Puneet K. Dokania,
Philip H. S. Torr, Marc'Aurelio Ranzato: On Tiny Episodic Memories in Continual Learning. 2019,
https://arxiv.org/abs/1902.10486

For each stream batch B:
  1. retrieve M from memory; no step while the memory is empty;
  2. draw one random view of M ∪ B;
  3. step on the mean cross-entropy of the raw logits over all outputs;
  4. offer B to the reservoir.
The ER of the surveys by Mai et al. has separate passes, also on the first batch (`passes`), and
optionally a softmax over the classes of the batch alone (`loss_classes`) and `review`.

Differences from the released code ("there"): several views do not replace the linear head (there by
a projection of 128 outputs), and predictions are among the classes seen.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.losses.cross_entropy_among import cross_entropy_among
from sterad.methods.base.learner import METHODS, Problem
from sterad.methods.base.parts import Parts, ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import OMIT_DEFAULT_FROM_ID, BelowOne, NonNegative, Positive


@dataclass(frozen=True)
class ERConfig(ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.01
    momentum: BelowOne = 0.9
    weight_decay: NonNegative = 1e-4
    passes: Literal["joint", "separate"] = field(default="joint", metadata=OMIT_DEFAULT_FROM_ID)
    """joint: one pass over memory and stream together, the mean over both; separate: one pass for
    each, the sum of both means, also while the memory is empty."""
    loss_classes: Literal["all", "seen", "batch"] = field(
        default="all", metadata=OMIT_DEFAULT_FROM_ID
    )
    """Classes in the softmax of the loss: all outputs, those seen so far (a head that grows with
    the classes), or those of the batch in each pass (labels trick)."""


@METHODS.register("er")
class ER(Replay):
    """Cross-entropy on memory and stream together."""

    Config = ERConfig
    config: ERConfig
    supervises_stages = True
    allows_preparatory_classes = True
    trains_without_memory = False

    def __init__(self, config: ERConfig, problem: Problem, parts: Parts) -> None:
        """Train on the first batch too if the passes are separate, as published."""
        super().__init__(config, problem, parts)
        self.trains_without_memory = config.passes == "separate"

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of all views of both batches, or the sum of two means."""
        if self.config.passes == "separate":
            return self.sum_of_passes([one for one in (batch, retrieved) if len(one)])
        logits, labels = self.forward_views(Batch.concatenate(retrieved, batch))
        self.record_losses(self.cross_entropy, logits, labels)
        return self.cross_entropy(logits, labels)

    def loss_of_outputs(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean cross-entropy of one view."""
        return self.cross_entropy(outputs, self.engine.to_device(labels))

    def sum_of_passes(self, batches: list[Batch]) -> Tensor:
        """Return the sum of the mean losses of batches, each in a pass of its own."""
        outputs = [self.forward_views(one) for one in batches]
        if self.sample_losses is not None:
            losses = [self.cross_entropy(z.detach(), y, reduction="none") for z, y in outputs]
            self.sample_losses.append((torch.cat(losses), torch.cat([y for _, y in outputs])))
        return torch.stack([self.cross_entropy(z, y) for z, y in outputs]).sum()

    def cross_entropy(self, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
        """Return the cross-entropy among the classes that `loss_classes` names."""
        if self.config.loss_classes == "all":
            return F.cross_entropy(logits, labels, **options)
        classes = self.contrasted(labels)
        if self.config.loss_classes == "seen":
            classes = torch.cat([classes, self.engine.to_device(self.seen)])
        return cross_entropy_among(logits, labels, classes.unique(), **options)
