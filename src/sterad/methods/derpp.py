"""DER++: dark experience replay, which also remembers what the network used to answer.

Pietro Buzzega, Matteo Boschini, Angelo Porrello, Davide Abati, Simone Calderara: Dark Experience
for General Continual Learning: a Strong, Simple Baseline. NeurIPS 2020,
https://arxiv.org/abs/2004.07211

For each stream batch B, each item in a view and a forward pass of its own:
  1. o = logits of B, L = cross-entropy of o;
  2. retrieve M' with the logits stored, L += alpha · mean squared distance of its logits to those;
  3. retrieve M'' independently, L += beta · its cross-entropy; an empty memory leaves 2 and 3 out;
  4. step on L, then offer the raw images of B to the reservoir with o, the logits before the step.

What differs from the released code: crops are drawn for each image; several views work: o is that
of the first one, and all views of M' are pulled to what is stored; the head may grow: logits stored
before are compared over the outputs that there were; answers are among the classes seen.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.losses.logit_replay import logit_replay_loss
from sterad.methods.learner import METHODS
from sterad.methods.replay import Replay, ReplayConfig
from sterad.streams import Batch
from sterad.validation import BelowOne, NonNegative, Positive


@dataclass(frozen=True)
class DERppConfig(ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 0.03
    momentum: BelowOne = 0.0
    weight_decay: NonNegative = 0.0
    augmentation: str = "partial"
    alpha: NonNegative = 0.2
    """Weight of the distance to the stored logits."""
    beta: NonNegative = 1.0
    """Weight of the cross-entropy on memory images."""


@METHODS.register("derpp", alias=("der++",))
class DERpp(Replay):
    """Cross-entropy on the stream, logit replay and cross-entropy on two draws from memory."""

    Config = DERppConfig
    config: DERppConfig
    before: Tensor
    """Logits of the stream batch before the step on it: (n, outputs)."""

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean losses of the stream and, once there is a memory, of two draws."""
        draws = (retrieved, self.retrieve(batch)) if len(retrieved) else ()
        (logits, labels), *replayed = self.outputs_of(batch, *draws)
        self.before = logits[: len(batch)].detach()
        loss = F.cross_entropy(logits, labels)
        if replayed:
            (drifted, _), again = replayed
            loss = loss + self.config.alpha * self.drift(drifted, retrieved)
            loss = loss + self.config.beta * F.cross_entropy(*again)
        return loss

    def drift(self, logits: Tensor, kept: Batch) -> Tensor:
        """Return the mean squared distance of logits to those that were stored with the images."""
        kept, shown = kept.to(logits.device), len(logits) // len(kept)
        stored, widths = kept.extra["logits"], kept.extra["outputs"]
        return logit_replay_loss(logits, stored.repeat(shown, 1), widths.repeat(shown))

    def remember(self, batch: Batch) -> None:
        """Offer the raw stream batch with the logits that it had, and how many those are."""
        outputs = torch.full((len(batch),), self.before.shape[1])
        self.memory.update(Batch(batch.x, batch.y, {"logits": self.before, "outputs": outputs}))
