"""MKD: experience replay that distills from a slow copy of itself.

Nicolas Michel, Maorong Wang, Ling Xiao, Toshihiko Yamasaki: Rethinking Momentum Knowledge
Distillation in Online Continual Learning. ICML 2024, https://arxiv.org/abs/2309.02870

With a student S and a teacher T, for each stream batch B:
  1. retrieve M from memory, X = M ∪ B; no step while the memory is empty;
  2. draw one random view V of X;
  3. step on the mean cross-entropy of S(V) + λ/2 [KL(T(V) ‖ S(V)) + KL(T(V) ‖ S(X))], over all
     outputs, where KL is T² times the divergence at temperature T = 4, λ = 5.5;
  4. θ_T ← (1 - α) θ_T + α / (1 - α^k) θ_S, α = 0.01, k counts the updates in tens;
  5. offer B to the reservoir.
Predictions come from the mean of both weights. The teacher starts almost zero and normalizes by the
statistics of its batches: see `base/teacher`. This is the released code; its paper lets the teacher
see V and X, and the student V alone (`teacher_inputs=both`).

Any replay method can distill like this: `teacher=ema` adds steps 2 to 4 to its own loss.

Differences from the released code: predictions are among the classes seen; the network is that of
the run (there a ResNet-18 of width 64).
"""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import torch.nn.functional as F
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.base.learner import METHODS, Cost, Problem
from sterad.methods.base.optimizers import OptimizerName
from sterad.methods.base.parts import Parts, ReplayConfig
from sterad.methods.base.replay import Replay
from sterad.methods.base.teacher import MomentumDistillation
from sterad.streams import Batch
from sterad.validation import ADVANCED, Positive, Range


@dataclass(frozen=True)
class MKDConfig(ReplayConfig):
    """The released settings, the same for all datasets."""

    lr: Positive = 5e-4
    optimizer: OptimizerName = "adam"
    views: Annotated[int, Range(1, 1)] = 1
    """Always 1: the cross-entropy and the distillation share one random view."""
    teacher: Literal["none", "ema"] = field(default="ema", metadata=ADVANCED)
    """Always ema: without a teacher this is ER."""


@METHODS.register("mkd")
class MKD(Replay):
    """Cross-entropy on memory and stream, and distillation from an average of the weights."""

    Config = MKDConfig
    trains_without_memory = False
    allows_preparatory_classes = True
    own_additions = (MomentumDistillation,)

    def __init__(self, config: MKDConfig, problem: Problem, parts: Parts) -> None:
        """Refuse to train without a teacher."""
        if config.teacher == "none":
            raise SteradError("mkd distills from a teacher: leave teacher=ema, or use er")
        super().__init__(config, problem, parts)

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the cost of ER and its teacher, less one pass: they share the view."""
        both = super().cost(config, batch_size, memory, samples)
        shared = (batch_size + config.memory_batch) * config.memory_iterations
        return replace(both, step=both.step - shared)

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the cross-entropy of a view of both batches and its distillation."""
        distillation = next(one for one in self.additions if isinstance(one, MomentumDistillation))
        return distillation.loss(self, retrieved, batch)

    def virtual_loss(self, batch: Batch) -> Tensor:
        """Return the cross-entropy of a view of the stream batch."""
        return F.cross_entropy(*self.forward_views(batch))
