"""DER++: dark experience replay, which stores logits beside the images.

Pietro Buzzega, Matteo Boschini, Angelo Porrello, Davide Abati, Simone Calderara: Dark Experience
for General Continual Learning: a Strong, Simple Baseline. NeurIPS 2020,
https://arxiv.org/abs/2004.07211

For each stream batch B, each of the three batches in its own view and forward pass:
  1. o = logits of B, L = cross-entropy of o;
  2. retrieve M' with its stored logits, L += alpha · mean squared distance of its logits to them;
  3. retrieve M'' independently, L += beta · its cross-entropy; 2 and 3 need a memory;
  4. step on L, then offer the raw images of B to the reservoir with o, the logits before the step.

Differences from the released code: crops are drawn per image; several views are possible: o is
that of the first one, and all views of M' are compared with the stored logits; the head may grow:
earlier logits are compared over the outputs of that time; predictions are among the classes seen.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.losses.logit_replay import logit_replay_loss
from sterad.methods.base.learner import METHODS
from sterad.methods.base.parts import ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.saved_state import check_like
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
    chooses_views = False
    allows_preparatory_classes = True
    draws_per_step = 2
    before: Tensor
    """Logits of the stream batch before the step on it: (n, outputs)."""

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of the stream batch and two batches from memory."""
        return super().step_cost(config, batch_size, 2 * replayed)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of the stream batch and, with a memory, of two batches from it."""
        draws = (retrieved, self.retrieve(batch)) if len(retrieved) else ()
        inputs, labels = zip(*map(self.stack_views, (batch, *draws)), strict=True)
        logits, *replayed = self.engine.forward(inputs).split([*map(len, labels)])
        self.before = logits[: len(batch)].detach()
        loss = F.cross_entropy(logits, labels[0])
        if replayed:
            loss = loss + self.config.alpha * self.drift(replayed[0], retrieved)
            loss = loss + self.config.beta * F.cross_entropy(replayed[1], labels[2])
        return loss

    def drift(self, logits: Tensor, stored: Batch) -> Tensor:
        """Return the mean squared distance of logits to those stored with the images."""
        stored, views = stored.to(logits.device), len(logits) // len(stored)
        old_logits, outputs = stored.extra["logits"], stored.extra["outputs"]
        return logit_replay_loss(logits, old_logits.repeat(views, 1), outputs.repeat(views))

    def remember(self, batch: Batch) -> None:
        """Offer the raw stream batch with its logits before the step and their number."""
        outputs = torch.full((len(batch),), self.before.shape[1])
        self.memory.update(Batch(batch.x, batch.y, {"logits": self.before, "outputs": outputs}))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state after checking the columns stored with the images."""
        if columns := state["memory"].get("columns"):
            rows, dtype = len(columns["y"]), next(self.network.parameters()).dtype
            logits = torch.empty(rows, columns["logits"].shape[-1], dtype=dtype)
            like = {"logits": logits, "outputs": torch.empty(rows, dtype=torch.int64)}
            check_like({name: columns[name] for name in like}, like, "memory")
        super().load_state_dict(state)
