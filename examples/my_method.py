"""A method of one's own: replay with a margin, in one file.

sterad train margin --plugin examples/my_method.py --margin 0.5
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from sterad.methods import METHODS, Replay, ReplayConfig
from sterad.streams import Batch


@dataclass(frozen=True)
class MarginConfig(ReplayConfig):
    """Replay's fields and one more."""

    margin: float = 1.0
    """How far the right class must lead."""


@METHODS.register("margin")
class Margin(Replay):
    """Multi-class hinge loss on one view of memory and stream."""

    Config = MarginConfig
    config: MarginConfig

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean hinge loss of the logits."""
        logits, labels = self.outputs(Batch.concatenate(retrieved, batch))
        return F.multi_margin_loss(logits, labels, margin=self.config.margin)
