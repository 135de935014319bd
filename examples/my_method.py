"""Your own method in one file: replay with a margin loss.

sterad train margin --plugin examples/my_method.py --margin 0.5
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from sterad.methods import METHODS, Replay, ReplayConfig
from sterad.streams import Batch


@dataclass(frozen=True)
class MarginConfig(ReplayConfig):
    """The fields of every replay method, and the margin."""

    margin: float = 1.0
    """Minimum difference between the logit of the true class and the others."""


@METHODS.register("margin")
class Margin(Replay):
    """Multi-class hinge loss on one view of the memory batch and the stream batch."""

    Config = MarginConfig
    config: MarginConfig

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean hinge loss of the logits."""
        logits, labels = self.forward_views(Batch.concatenate(retrieved, batch))
        return F.multi_margin_loss(logits, labels, margin=self.config.margin)
