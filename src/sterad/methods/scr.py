"""SCR: supervised contrastive replay with a nearest-mean classifier.

Zheda Mai, Ruiwen Li, Hyunwoo Kim, Scott Sanner: Supervised Contrastive Replay: Revisiting the
Nearest Class Mean Classifier in Online Class-Incremental Continual Learning. CVPR Workshops 2021,
https://arxiv.org/abs/2103.13885

For each stream batch B:
  1. retrieve M from memory, X = M ∪ B; no step while the memory is empty;
  2. n random views of X and X itself, each in its own forward pass;
  3. z = unit-length projection of 128 dimensions;
  4. step on the mean supervised contrastive loss of all views, temperature 0.07;
  5. offer B to the reservoir.
Predictions use the nearest class mean of unit-length encoder features, without the projection.

Differences from the released code: only the augmentation (see `views`); an image without another of
its class, which only a single view can cause, is left out of the mean instead of giving NaN. A
teacher is distilled by the mean of 1 - cosine of both projections.
"""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network
from sterad.losses.supervised_contrastive import supervised_contrastive_loss
from sterad.methods.base.learner import METHODS
from sterad.methods.base.parts import ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import BelowOne, Dimension, NonNegative, Positive, Views


@dataclass(frozen=True)
class SCRConfig(ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.01
    momentum: BelowOne = 0.9
    weight_decay: NonNegative = 1e-4
    views: Views = 1
    """Random views of each image beside the raw image."""
    head: str = "mlp"
    projection: Dimension = 128
    """Dimension of the projection; it does not grow with the classes."""
    temperature: Positive = 0.07
    """Divisor of the cosines."""
    classifier: str = "nearest-mean"
    """Classifier that is fitted to features of the memory; the projection has no classes."""


@METHODS.register("scr")
class SCR(Replay):
    """Pulls images of one class together, from the stream or from memory."""

    Config = SCRConfig
    config: SCRConfig
    supervises_stages = True
    trains_without_memory = False
    includes_raw = True
    head_classifier = None

    def make_network(self, outputs: int) -> Network:
        """Give the projection its dimension, whatever the number of classes."""
        return super().make_network(self.config.projection)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean supervised contrastive loss of both batches together."""
        z, labels = self.representations(Batch.concatenate(retrieved, batch))
        self.record_losses(self.contrast, z, labels)
        return self.contrast(z, labels)

    def contrast(
        self, z: Tensor, labels: Tensor, reduction: Literal["mean", "none"] = "mean"
    ) -> Tensor:
        """Return the contrastive loss of z: (n, d) unit rows."""
        return supervised_contrastive_loss(
            z, self.engine.to_device(labels), self.config.temperature, reduction
        )

    def loss_of_outputs(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the contrastive loss of the images of one view with each other."""
        return self.contrast(F.normalize(outputs), labels)

    def candidate_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the contrastive loss of each candidate among all of them."""
        return self.contrast(F.normalize(outputs), labels, "none")

    def distillation_loss(self, target: Tensor, output: Tensor, temperature: float = 4.0) -> Tensor:
        """Return the mean of 1 - cosine between the teacher's projections and these."""
        return 1 - F.cosine_similarity(target, output).mean()
