"""Contrastive replay: what SCR and LUMP share, a projection in which no output stands for a class.

Rows of unit length are compared with one another, so the head is a projection of fixed width, and
answers come from the nearest class mean of unit-length encoder features, the head thrown away. A
teacher is followed by the angle: the distance is the mean of 1 - cosine of both projections.
"""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from sterad.losses.supervised_contrastive import supervised_contrastive_loss
from sterad.methods.replay import Replay, ReplayConfig
from sterad.validation import BelowOne, Dimension, NonNegative, Positive


@dataclass(frozen=True)
class ContrastiveConfig(ReplayConfig):
    """The released settings of SCR, the same for all datasets."""

    lr: Positive = 0.01
    momentum: BelowOne = 0.9
    weight_decay: NonNegative = 1e-4
    head: str = "mlp"
    projection: Dimension = 128
    """Dimension of the projection; it does not grow with the classes."""
    temperature: Positive = 0.07
    """Temperature: the divisor of the cosine similarities."""
    classifier: str = "nearest-mean"
    """Classifier, fitted to the features of the memory; the head cannot classify."""


class Contrastive(Replay):
    """Pull together what belongs together, push apart the rest."""

    Config = ContrastiveConfig
    config: ContrastiveConfig
    trains_without_memory = False
    head_classifier = None

    def first_outputs(self) -> int:
        """Return the projection's width."""
        return self.config.projection

    def contrast(
        self, z: Tensor, labels: Tensor, reduction: Literal["mean", "none"] = "mean"
    ) -> Tensor:
        """Return the contrastive loss of z: (n, d) unit rows."""
        return supervised_contrastive_loss(
            z, self.engine.to_device(labels), self.config.temperature, reduction
        )

    def distance(self, taught: Tensor, learned: Tensor) -> Tensor:
        """Return the mean of 1 - cosine between the teacher's projections and these."""
        return 1 - F.cosine_similarity(taught, learned).mean()
