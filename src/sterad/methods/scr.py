"""SCR: supervised contrastive replay, answered by nearest class means.

Zheda Mai, Ruiwen Li, Hyunwoo Kim, Scott Sanner: Supervised Contrastive Replay: Revisiting the
Nearest Class Mean Classifier in Online Class-Incremental Continual Learning. CVPR Workshops 2021,
https://arxiv.org/abs/2103.13885

For each stream batch B:
  1. retrieve M from memory, X = M ∪ B; nothing is learned while the memory is empty;
  2. show n random views of X and X itself, each in a forward pass of its own;
  3. z = unit-length projection, 128 wide;
  4. step on the mean supervised contrastive loss of all views, temperature 0.07;
  5. offer B to the reservoir.

What differs from the released code: nothing but what the views are (see `views`); an image without
another of its class, which only a single view can bring about, is left out of the mean, not NaN.
"""

from dataclasses import dataclass

from torch import Tensor

from sterad.methods.contrastive import Contrastive, ContrastiveConfig
from sterad.methods.learner import METHODS
from sterad.streams import Batch
from sterad.validation import Views


@dataclass(frozen=True)
class SCRConfig(ContrastiveConfig):
    """The released settings, the same for all datasets."""

    views: Views = 1
    """Number of random views per image, in addition to the image itself."""


@METHODS.register("scr")
class SCR(Contrastive):
    """Images of one class together, whether from the stream or from memory."""

    Config = SCRConfig
    includes_raw = True

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean supervised contrastive loss of both batches together."""
        z, labels = self.representations(Batch.joined(retrieved, batch))
        if self.records_sample_losses:
            self.sample_losses = self.contrast(z.detach(), labels, "none"), labels
        return self.contrast(z, labels)
