"""GSA: replay with class weights that balance the gradients of each class.

Yiduo Guo, Bing Liu, Dongyan Zhao: Dealing with Cross-Task Class Discrimination in Online Continual
Learning. CVPR 2023, https://arxiv.org/abs/2305.14657

H(X) are the images of X and their copies with mirrored halves, in one random view. For each stream
batch B:
  1. N = B and samples of the current task from memory, half a memory batch in all;
  2. with r = new / seen classes: Q = ⌊64 (1 - r)⌋ samples of earlier tasks from memory and the
     first ⌊64 r⌋ of N;
  3. for each class: positive += Σ 1 - p over its samples in H(Q), negative += Σ p over others,
     w = 2 / (1 + exp(1 - positive / negative)), but 1 in the first five batches of a task;
  4. step on 2 · mean of -w_y log p_y over H(Q) + cross-entropy of H(N) among the classes of the
     task; while the memory is empty on the latter alone;
  5. offer B to the reservoir.
p is the softmax over the classes seen, which also predict.

Differences from the released code ("there"), as far as it is known: the left and the right half of
an image are each mirrored left to right; feature vectors have no mirrored copies; N and Q are
normalized by BatchNorm each on their own; both sums include the current Q; inputs are normalized
only if the encoder declares it; classes and tasks are counted as they appear (there their number
per task is given), so that boundaries may be detected, and if tasks share classes, a class is new
in the first of them only; feature columns and the distance to old logits, which have no effect
there, are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.losses.cross_entropy_among import cross_entropy_among
from sterad.losses.gradient_balance import balance_weights, gradient_masses
from sterad.methods.base.learner import METHODS, Problem
from sterad.methods.base.optimizers import OptimizerName
from sterad.methods.base.parts import Parts
from sterad.methods.base.task_replay import TaskReplay, TaskReplayConfig, join
from sterad.saved_state import check_like
from sterad.streams import Batch
from sterad.validation import BelowOne, Count, NonNegative, Positive, Range
from sterad.views.geometry import mirrored_halves


@dataclass(frozen=True)
class GSAConfig(TaskReplayConfig):
    """The released settings."""

    lr: Positive = 1e-3
    optimizer: OptimizerName = "adam"
    beta2: BelowOne = 0.99
    weight_decay: NonNegative = 1e-4
    views: Annotated[int, Range(1, 1)] = 1
    """Always 1: the loss takes one random view."""
    warmup: Count = 5
    """Batches at the beginning of a task in which all weights are 1."""


@METHODS.register("gsa")
class GSA(TaskReplay):
    """Cross-entropy of a balanced batch, weighted by the gradients of each class so far."""

    Config = GSAConfig
    config: GSAConfig
    published_views: ClassVar[Mapping[str, Any]] = {
        "flip_probability": 0.0,
        "min_crop": 0.6,
        "jitter_probability": 0.0,
        "gray_probability": 0.2,
    }

    def __init__(self, config: GSAConfig, problem: Problem, parts: Parts) -> None:
        """Start without gradients."""
        super().__init__(config, problem, parts)
        self.masses = self._no_masses(self.network.outputs)
        """Positive and negative mass of each class: (2, outputs) on the network's device."""

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of N and of a full Q, both doubled."""
        new = max(replayed // 2, batch_size)
        return float(2 * (new + replayed))

    def retrieve(self, batch: Batch) -> Batch:
        """Return the samples of N that are not in the batch, and those of Q that are not in N."""
        size = self.config.memory_batch
        current = self.draw_current(max(size // 2 - len(batch), 0), batch)
        return join(current, self.draw_earlier(self.count_old(size), batch))

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of the new set and, with a memory, of the balanced batch."""
        current, earlier = self.split_tasks(retrieved)
        new = Batch.concatenate(batch, current) if len(current) else batch
        count = min(self.count_new(self.config.memory_batch), len(new))
        balanced = Batch.concatenate(earlier, Batch(new.x[:count], new.y[:count]))
        classes = self.classes_with(batch.y)
        if not (len(retrieved) and len(balanced)):
            x, y = self.doubled(new)
            return cross_entropy_among(self.engine.forward([x]), y, classes)
        (x_n, y_n), (x_q, y_q) = self.doubled(new), self.doubled(balanced)
        logits_n, logits_q = self.engine.forward([x_n, x_q]).split([len(x_n), len(x_q)])
        return 2 * self.weighted(logits_q, y_q) + cross_entropy_among(logits_n, y_n, classes)

    def doubled(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return a view of each image and of its copy with mirrored halves, and their labels."""
        x, y = self.engine.to_device(batch.x), self.engine.to_device(batch.y)
        if x.ndim != 4:
            return self.view(x), y
        return self.view(torch.cat([x, mirrored_halves(x)])), y.repeat(2)

    def weighted(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Add the gradients of a balanced batch; return the mean of -w_y log p_y."""
        seen = self.engine.to_device(self.seen)
        logits, targets = logits[:, seen], torch.searchsorted(seen, labels)
        masses = self.masses.index_add(1, seen, gradient_masses(logits, targets))
        self.masses = masses
        weights = balance_weights(masses[:, seen])
        if self.task_batches <= self.config.warmup:
            weights = torch.ones_like(weights)
        return F.cross_entropy(logits, targets, weights, reduction="sum") / len(targets)

    def widen(self, outputs: int) -> None:
        """Grow the head; new classes have no gradients yet."""
        super().widen(outputs)
        self.masses = F.pad(self.masses, (0, outputs - self.masses.shape[1]))

    def _no_masses(self, outputs: int) -> Tensor:
        weight = next(self.network.parameters())
        return torch.zeros(2, outputs, dtype=weight.dtype, device=weight.device)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state, with the gradients of each class."""
        return super().state_dict() | {"masses": self.masses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        check_like(state["masses"], self._no_masses(state["outputs"]), "masses")
        super().load_state_dict(state)
        self.masses = state["masses"].to(self.engine.device)
