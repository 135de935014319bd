"""OCM: maximize mutual information, so that features keep more than the current task needs.

Yiduo Guo, Bing Liu, Dongyan Zhao: Online Continual Learning through Mutual Information
Maximization. ICML 2022, https://proceedings.mlr.press/v162/guo22g.html

R(x) are sixteen rotated variants of x, each its own class; f are unit features, u unit
representations of a linear head; s is a random slice of f as wide as u; S = u sᵀ + u uᵀ over
V = [R(x); view of R(x)]. For each stream batch B:
  1. in the first task: paired_loss(S of B) + cross-entropy of a view of B;
  2. later, with M from memory: paired_loss(S of B) + alike_loss(S of M)
     + alike_loss(u(R(M)) u⁻(R(M))ᵀ) + cross-entropy of a view of M
     + mean square distance of its logits of old classes to those of the snapshot;
  3. step, then offer B to the reservoir.
At the end of a task, announced or detected, the snapshot (u⁻, and its logits) is a copy of the
network, and old are the classes seen up to it.

Differences from the released code ("there"): the terms of S have weight 1, as in OCM (there ½); the
snapshot is in evaluation mode without gradients (there it kept updating BatchNorm statistics);
network and snapshot see the same view of M (there one each); on blurry streams `old` changes with
the snapshot only (there with every new class); the slice may also be the last one; u has no more
dimensions than f; predictions are among seen classes. From OCM: the augmentation and
`memory_batch`.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.losses.mutual_information import alike_loss, paired_loss
from sterad.methods.base.learner import FORWARD_COST, METHODS, Problem
from sterad.methods.base.parts import Parts
from sterad.methods.base.rotated_replay import RotatedReplay, RotatedReplayConfig
from sterad.methods.base.teacher import FrozenCopy
from sterad.saved_state import check_labels, check_like
from sterad.streams import Batch
from sterad.validation import Positive
from sterad.views.geometry import FOLD, sixteenfold


@dataclass(frozen=True)
class OCMConfig(RotatedReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 1e-3


@METHODS.register("ocm")
class OCM(RotatedReplay):
    """Mutual information of features, representations and a snapshot of the last task."""

    Config = OCMConfig
    config: OCMConfig

    def __init__(self, config: OCMConfig, problem: Problem, parts: Parts) -> None:
        """Start without a snapshot."""
        super().__init__(config, problem, parts)
        self.snapshot: FrozenCopy | None = None
        self.old = torch.zeros(0, dtype=torch.int64)
        """Classes seen up to the snapshot."""

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of the rotated variants, their views and the snapshot's passes."""
        rotated = 2 * FOLD * (batch_size + replayed)
        return rotated + replayed + FORWARD_COST * (FOLD + 1) * replayed

    def end_task(self) -> None:
        """Take a snapshot."""
        self.snapshot, self.old = FrozenCopy(self.network), self.seen

    def retrieve(self, batch: Batch) -> Batch:
        """Return images of the memory; none in the first task."""
        return self.memory.sample(0) if self.snapshot is None else super().retrieve(batch)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of the stream batch in the first task, and of both batches later."""
        T, kinds = self.config.temperature, self.kinds(batch).repeat(2)
        if self.snapshot is None or not len(retrieved):
            ((stream, _),) = self.similarities(batch)
            return paired_loss(stream, kinds, T) + F.cross_entropy(*self.forward_views(batch))
        (stream, _), (memory, u) = self.similarities(batch, retrieved)
        information = paired_loss(stream, kinds, T)
        kinds, x = self.kinds(retrieved), self.engine.to_device(retrieved.x)
        _, before = self.represent(self.snapshot.network, sixteenfold(x))
        information = information + alike_loss(memory, kinds.repeat(2), T)
        information = information + alike_loss(u[: len(before)] @ before.T, kinds, T)
        labels = self.engine.to_device(retrieved.y)
        return information + self.classification(x, labels, self.snapshot)

    def classification(self, x: Tensor, labels: Tensor, snapshot: FrozenCopy) -> Tensor:
        """Return the cross-entropy of a view of the memory and its distance to the snapshot."""
        view = self.view(x)
        logits, before = self.engine.forward([view]), snapshot(view)
        self.engine.count(view, backward=False)
        distance = F.mse_loss(logits[:, self.old], before[:, self.old])
        return F.cross_entropy(logits, labels) + distance

    def similarities(self, *batches: Batch) -> list[tuple[Tensor, Tensor]]:
        """Return S and u of the variants of each batch and of a view of them, all in one pass."""
        rotated = [sixteenfold(self.engine.to_device(batch.x)) for batch in batches]
        inputs = [torch.cat([x, self.view(x)]) for x in rotated]
        f, u = self.represent(self.network, torch.cat(inputs))
        sizes = [len(x) for x in inputs]
        both = zip(f.split(sizes), u.split(sizes), strict=True)
        return [(u @ self.slice_of(f, u).T + u @ u.T, u) for f, u in both]

    def widen(self, outputs: int) -> None:
        """Grow the heads of network and snapshot."""
        super().widen(outputs)
        if self.snapshot is not None:
            self.snapshot.widen(self.network)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the snapshot and its classes."""
        snapshot = None if self.snapshot is None else self.snapshot.network.state_dict()
        return super().state_dict() | {"snapshot": snapshot, "old": self.old}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        super().load_state_dict(state)
        check_labels(state["old"], "old")
        self.snapshot, self.old = None, state["old"]
        if state["snapshot"] is not None:
            check_like(state["snapshot"], self.network.state_dict(), "snapshot")
            self.snapshot = FrozenCopy(self.network)
            self.snapshot.network.load_state_dict(state["snapshot"])
