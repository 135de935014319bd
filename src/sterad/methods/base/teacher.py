"""The momentum teacher: a slow copy of the student that any replay method can distill from.

Nicolas Michel, Maorong Wang, Ling Xiao, Toshihiko Yamasaki: Rethinking Momentum Knowledge
Distillation in Online Continual Learning. ICML 2024, https://arxiv.org/abs/2309.02870

After each step θ_T ← m θ_T + (1 - m) θ_S. Differences from the released code ("there"): the teacher
starts as a copy of the student instead of almost zero; running statistics of BatchNorm follow like
the weights, and the teacher is in evaluation mode; only distillation is added to a method's loss,
not a further cross-entropy; the distilled view uses the method's own augmentation (there always the
full one) and is a new one also for ER; the student predicts by default (there the average).
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network
from sterad.encoders.heads import last_layer
from sterad.methods.base.additions import Addition
from sterad.methods.base.learner import FORWARD_COST
from sterad.streams import Batch
from sterad.validation import ADVANCED, BelowOne, NonNegative, Positive

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay


@dataclass(frozen=True)
class TeacherConfig:
    """Distillation from a momentum teacher."""

    teacher: Literal["none", "ema"] = field(default="none", metadata=ADVANCED)
    """ema adds distillation from a momentum teacher to the loss."""
    teacher_momentum: BelowOne = field(default=0.99, metadata=ADVANCED)
    """Momentum of the teacher's weights, in [0, 1)."""
    teacher_weight: NonNegative = field(default=5.5, metadata=ADVANCED)
    """Weight of the distillation loss."""
    teacher_temperature: Positive = field(default=4.0, metadata=ADVANCED)
    """Temperature of the distilled posteriors."""
    predict_with: Literal["student", "teacher", "average"] = field(
        default="student", metadata=ADVANCED
    )
    """Weights used for predictions: the student's, the teacher's or their average."""


class Teacher:
    """An exponential moving average of a network, without gradients."""

    def __init__(self, student: Network, momentum: float) -> None:
        """Copy the student."""
        self.network = deepcopy(student).eval().requires_grad_(False)
        self.momentum = momentum

    def __call__(self, x: Tensor) -> Tensor:
        """Return raw outputs for images on the device, without a graph."""
        with torch.no_grad():
            out: Tensor = self.network(x)
            return out

    @torch.no_grad()
    def follow(self, student: Network) -> None:
        """Update the averages of weights and running statistics; copy counters."""
        new = student.state_dict()
        for name, average in self.network.state_dict().items():
            if average.is_floating_point():
                average.lerp_(new[name], 1 - self.momentum)
            else:
                average.copy_(new[name])

    @torch.no_grad()
    def widen(self, student: Network) -> None:
        """Copy the new rows of the student's head; existing rows stay."""
        layer, wider = last_layer(self.network.head), last_layer(student.head)
        if layer is None or wider is None:
            return
        for name, old in list(layer.named_parameters(recurse=False)):
            new = wider.get_parameter(name).detach().clone()
            new[: len(old)] = old
            setattr(layer, name, torch.nn.Parameter(new, requires_grad=False))
        layer.out_features = wider.out_features

    def predictor(
        self, student: Network, weights: Literal["student", "teacher", "average"]
    ) -> Network:
        """Return a network with the student's, the teacher's or the average weights."""
        if weights == "average":
            return self.average(student)
        return student if weights == "student" else self.network

    @torch.no_grad()
    def average(self, student: Network) -> Network:
        """Return a network with the mean of both weights and the student's running statistics."""
        mean = deepcopy(student)
        for weight, other in zip(mean.parameters(), self.network.parameters(), strict=True):
            weight.lerp_(other, 0.5)
        return mean


class MomentumDistillation(Addition):
    """Adds the distillation from a momentum teacher, which is part of the learner's state."""

    Config = TeacherConfig
    switch, switch_value = "teacher", "teacher=ema"

    def __init__(self, learner: "Replay") -> None:
        """Copy the network."""
        learner.teacher = Teacher(learner.network, learner.config.teacher_momentum)

    @classmethod
    def cost(cls, config: Any, images: int) -> float:
        """Return the cost of two passes of the student and one of the teacher."""
        return (2 + FORWARD_COST) * images

    def loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean distillation loss of a view and of the raw images.

        The target of both is the teacher's output for the view.
        """
        engine, config, teacher = learner.engine, learner.config, learner.teacher
        assert teacher is not None
        batches = (retrieved, batch) if len(retrieved) else (batch,)
        x = torch.cat([engine.to_device(one.x) for one in batches])
        view = learner.view(x)
        target = teacher(view)
        engine.count(view, backward=False)
        distances = [
            learner.distillation_loss(target, engine.forward([inputs])) for inputs in (view, x)
        ]
        return config.teacher_weight * (distances[0] + distances[1]) / 2

    def after_step(self, learner: "Replay") -> None:
        """Let the teacher follow the student."""
        if learner.teacher is not None:
            learner.teacher.follow(learner.network)


def distillation(target: Tensor, output: Tensor, temperature: float) -> Tensor:
    """Return T² KL(softmax(target / T) || softmax(output / T)), mean over rows of logits: (n, k).

    >>> t = torch.tensor([[2.0, 0.0]])
    >>> distillation(t, t, 4.0).item()
    0.0
    """
    log_p = F.log_softmax(target / temperature, dim=1)
    log_q = F.log_softmax(output / temperature, dim=1)
    return F.kl_div(log_q, log_p, reduction="batchmean", log_target=True) * temperature**2
