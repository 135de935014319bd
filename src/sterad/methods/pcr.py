"""PCR: proxy-based contrastive replay, which compares images with classes, not with images.

Huiwei Lin, Baoquan Zhang, Shanshan Feng, Xutao Li, Yunming Ye: PCR: Proxy-based Contrastive Replay
for Online Class-Incremental Continual Learning. CVPR 2023, https://arxiv.org/abs/2304.04408

For each stream batch B:
  1. retrieve M from memory, X = M ∪ B; no step while the memory is empty;
  2. one random view of X and X itself: n images in one forward pass;
  3. s_ic = cos(f_i, w_c) / 0.09, f the features, w_c the proxy of class c: a row of the head;
  4. step on (1/n) Σ_i [log Σ_j exp(s_i,y_j) - s_i,y_i], j over the n images: a class counts as
     often as it occurs, and absent classes get no gradient;
  5. offer B to the reservoir.
The sum over j is Σ_c n_c exp(s_ic), n_c images of class c, so 4 is the posterior loss with the
class frequencies of the batch as priors; only the constant log n_y is left out here.

Differences from its code: 64 images are retrieved, as for every method here (its own number is
10); predictions are among the classes seen; the network is that of the run. The optimizer is that
of its code; keeping it at this memory batch, and using one pass, are our choices.
"""

from dataclasses import dataclass

from torch import Tensor

from sterad.losses import posterior_loss_of_scores
from sterad.methods.base.learner import METHODS
from sterad.methods.base.parts import ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.validation import BelowOne, NonNegative, Positive, Views


@dataclass(frozen=True)
class PCRConfig(ReplayConfig):
    """The settings of its code, with the usual memory batch."""

    lr: Positive = 0.1
    momentum: BelowOne = 0.0
    weight_decay: NonNegative = 0.0
    head: str = "cosine"
    views: Views = 1
    """Number of random views per image, in addition to the image itself."""
    temperature: Positive = 0.09
    """Divisor of the cosines, in training and in predictions."""


@METHODS.register("pcr")
class PCR(Replay):
    """Cosines with learned proxies, contrasted among the classes of the batch."""

    Config = PCRConfig
    config: PCRConfig
    supervises_stages = True
    allows_preparatory_classes = True
    trains_without_memory = False
    includes_raw = True

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean posterior loss of both batches under their class frequencies."""
        joined = Batch.concatenate(retrieved, batch)
        cosines, _ = self.forward_views(joined)
        return self.loss_of_outputs(cosines, joined.y.repeat(len(cosines) // len(joined)))

    def loss_of_outputs(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean posterior loss of cosines under the class frequencies of the batch."""
        classes, counts = self.contrasted(labels).unique(return_counts=True)
        scores = outputs / self.config.temperature
        return posterior_loss_of_scores(scores, labels, classes, counts.log(), "mean")

    def class_scores(self, outputs: Tensor) -> Tensor:
        """Return the cosines with the proxies of the seen classes over the temperature."""
        return super().class_scores(outputs) / self.config.temperature

    def distillation_loss(self, target: Tensor, output: Tensor, temperature: float = 4.0) -> Tensor:
        """Return the distillation loss of the cosines over the method's temperature."""
        divisor = self.config.temperature
        return super().distillation_loss(target / divisor, output / divisor, temperature)
