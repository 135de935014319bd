"""ER-ACE: replay in which a stream batch does not push down classes that are not in it.

Lucas Caccia, Rahaf Aljundi, Nader Asadi, Tinne Tuytelaars, Joelle Pineau, Eugene Belilovsky: New
Insights on Reducing Abrupt Representation Change in Online Continual Learning. ICLR 2022,
https://arxiv.org/abs/2104.05025

For each stream batch B:
  1. retrieve M from memory, which is empty at first;
  2. L = cross-entropy of a view of B without the classes seen before that are not in B;
  3. L += cross-entropy of a view of M over all outputs, in a separate forward pass;
  4. step on L, then offer B to the reservoir.

Differences from the released code ("there"): classes never seen, which take part in 2, are searched
among all outputs of the head (there among as many as the batch has images); crops are drawn per
image; predictions are among the classes seen.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from sterad.losses.asymmetric_cross_entropy import asymmetric_cross_entropy
from sterad.methods.base.learner import METHODS
from sterad.methods.base.parts import ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import BelowOne, NonNegative, Positive


@dataclass(frozen=True)
class ERACEConfig(ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.001
    momentum: BelowOne = 0.9
    weight_decay: NonNegative = 0.0
    augmentation: str = "partial"


@METHODS.register("er-ace", alias=("erace",))
class ERACE(Replay):
    """Asymmetric cross-entropy on the stream, ordinary cross-entropy on the memory."""

    Config = ERACEConfig
    supervises_stages = True
    allows_preparatory_classes = True

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the sum of both mean losses; only the first while the memory is empty."""
        logits, labels = self.forward_views(batch)
        loss = asymmetric_cross_entropy(logits, labels, self.engine.to_device(self.seen))
        if len(retrieved):
            loss = loss + F.cross_entropy(*self.forward_views(retrieved))
        return loss
