"""The momentum teacher: a slow copy of the student that any replay method can distill from.

Nicolas Michel, Maorong Wang, Ling Xiao, Toshihiko Yamasaki: Rethinking Momentum Knowledge
Distillation in Online Continual Learning. ICML 2024, https://arxiv.org/abs/2309.02870

X are the images of memory and stream, V is a view of X, S the student, T the teacher and ℓ the
method's own loss. In each step:
  1. add ℓ(S(V)) + λ/2 [KL(T(V) ‖ S(V)) + KL(T(V) ‖ S(X))] to the method's loss;
  2. θ_T ← (1 - α) θ_T + α / (1 - α^k) θ_S, where k counts the updates in tens.
At first θ_T = α / (1 - α) θ_S, almost zero. The mean of both weights predicts, with the running
statistics of the student. KL is T² times the divergence at temperature T.

This is the released code. `teacher_inputs=both` is the paper: its teacher sees V and X, its student
V alone. `teacher_start=copy` is a plain average of weights that starts at the student's.

Differences from the released code ("there"): V is a view by the method's own augmentation (there
always the full one), and a new one also for ER (the method `mkd` distills the view of its loss);
k counts updates (there stream images by batch size, which is the same with one step on each batch);
weights that are not trained are copies; SCR distills cosines, and fixed directions the posteriors
of the seen classes, with sums over images as in their loss.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network
from sterad.encoders.heads import append_rows
from sterad.errors import SteradError
from sterad.methods.base.additions import Addition, join
from sterad.methods.base.learner import FORWARD_COST
from sterad.saved_state import check_count, check_like
from sterad.streams import Batch
from sterad.validation import ADVANCED, OMIT_DEFAULT_FROM_ID, BelowOne, NonNegative, Positive

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay

Weights = Literal["student", "teacher", "average"]
CORRECTION_UPDATES = 10
"""Updates of the teacher in each step of k, the exponent of its correction."""
_ADDED = ADVANCED | OMIT_DEFAULT_FROM_ID


@dataclass(frozen=True)
class TeacherConfig:
    """Distillation from a momentum teacher."""

    teacher: Literal["none", "ema"] = field(default="none", metadata=ADVANCED)
    """ema adds distillation from a momentum teacher to the loss."""
    teacher_momentum: BelowOne = field(default=0.99, metadata=ADVANCED)
    """Momentum of the teacher's weights, 1 - α, in [0, 1)."""
    teacher_weight: NonNegative = field(default=5.5, metadata=ADVANCED)
    """Weight λ of the distillation loss."""
    teacher_temperature: Positive = field(default=4.0, metadata=ADVANCED)
    """Temperature of the distilled posteriors."""
    teacher_view_loss: NonNegative = field(default=1.0, metadata=_ADDED)
    """Weight of the method's own loss on the distilled view."""
    teacher_inputs: Literal["view", "both"] = field(default="view", metadata=_ADDED)
    """view: the teacher sees the view, the student the view and the images (the released code);
    both: the teacher sees both, the student the view alone (the paper)."""
    teacher_start: Literal["zero", "copy"] = field(default="zero", metadata=_ADDED)
    """zero: the teacher starts with almost zero weights, and its updates are corrected (the
    released code); copy: a plain average that starts as a copy."""
    predict_with: Weights | None = field(default=None, metadata=ADVANCED)
    """Weights used for predictions: student, teacher or average, the mean of both (default: average
    with a teacher)."""

    def __post_init__(self) -> None:
        """Resolve the default of `predict_with`, so that a run records what it used."""
        if self.predict_with is None:
            object.__setattr__(self, "predict_with", self.default_predict_with)

    @property
    def default_predict_with(self) -> Weights:
        """The weights that predict if none are chosen."""
        return "student" if self.teacher == "none" else "average"


class FrozenCopy:
    """A copy of a network in evaluation mode and without gradients."""

    def __init__(self, student: Network) -> None:
        """Copy the student."""
        self.network = deepcopy(student).eval().requires_grad_(False)

    def __call__(self, x: Tensor) -> Tensor:
        """Return raw outputs for images on the device, without a graph."""
        with torch.no_grad():
            out: Tensor = self.network(x)
            return out

    @torch.no_grad()
    def widen(self, student: Network) -> None:
        """Copy the new rows of the student's heads; existing rows stay."""
        own, others = ([one.head, *one.stage_heads] for one in (self.network, student))
        for old, new in zip(own, others, strict=True):
            append_rows(old, new)


class Teacher(FrozenCopy):
    """An exponential moving average of the weights of a network.

    As in the released code it is in training mode: it normalizes by the statistics of its batches,
    and its running statistics, which only predictions of the teacher alone use, are its own.
    """

    def __init__(self, student: Network, momentum: float, start: Literal["zero", "copy"]) -> None:
        """Copy the student, and make the weights that are trained almost zero if so chosen."""
        if start == "zero" and momentum == 0:
            raise SteradError(
                "teacher_momentum=0 divides by zero in the start and the correction of the "
                "teacher: give a number above 0, or teacher_start=copy"
            )
        super().__init__(student)
        self.rate, self.start = 1 - momentum, start
        self.updates = 0
        if start == "zero":
            for weight, new in zip(self.network.parameters(), student.parameters(), strict=True):
                if new.requires_grad:
                    weight.mul_(self.rate / momentum)

    def __call__(self, x: Tensor) -> Tensor:
        """Return raw outputs for images on the device, in training mode without a graph."""
        self.network.train()  # an evaluation sets another mode
        return super().__call__(x)

    @torch.no_grad()
    def follow(self, student: Network) -> None:
        """Update the averages of the weights that are trained."""
        self.updates += 1
        weight = self.rate
        if self.start == "zero":
            weight /= 1 - self.rate ** max(1, self.updates // CORRECTION_UPDATES)
        for average, new in zip(self.network.parameters(), student.parameters(), strict=True):
            if new.requires_grad:
                average.mul_(1 - self.rate).add_(new, alpha=weight)

    def predictor(self, student: Network, weights: Weights | None) -> Network:
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
        config = learner.config
        self.teacher = Teacher(learner.network, config.teacher_momentum, config.teacher_start)
        learner.teacher = self.teacher

    @classmethod
    def cost(cls, config: Any, images: int) -> float:
        """Return the cost of the passes of the student and of the teacher."""
        if config.teacher_inputs == "both":
            return (1 + 2 * FORWARD_COST) * images
        return (2 + FORWARD_COST) * images

    def loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> Tensor:
        """Return the method's own loss on a new view, and the distillation."""
        engine, config, joined = learner.engine, learner.config, join(retrieved, batch)
        x = engine.to_device(joined.x)
        view = learner.view(x)
        output, target = engine.forward([view]), self.target(learner, view)
        if config.teacher_inputs == "both":
            pairs = (target, output), (self.target(learner, x), output)
        else:
            pairs = (target, output), (target, engine.forward([x]))
        temperature = config.teacher_temperature
        distances = [learner.distillation_loss(*pair, temperature) for pair in pairs]
        loss = config.teacher_weight * (distances[0] + distances[1]) / 2
        if config.teacher_view_loss:
            loss = loss + config.teacher_view_loss * learner.loss_of_outputs(output, joined.y)
        return loss

    def target(self, learner: "Replay", x: Tensor) -> Tensor:
        """Return raw outputs of the teacher."""
        learner.engine.count(x, backward=False)
        return self.teacher(x)

    def after_step(self, learner: "Replay") -> None:
        """Let the teacher follow the student."""
        self.teacher.follow(learner.network)

    def widen(self, learner: "Replay") -> None:
        """Copy the new rows of the student's head."""
        self.teacher.widen(learner.network)

    def state_dict(self) -> dict[str, Any]:
        """Return the teacher's weights and buffers, and the number of its updates."""
        return {"network": self.teacher.network.state_dict(), "updates": self.teacher.updates}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits the teacher."""
        check_like(state, self.state_dict(), "teacher")
        check_count(state["updates"], "updates of the teacher")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        self.teacher.network.load_state_dict(state["network"])
        self.teacher.updates = state["updates"]


def distillation(target: Tensor, output: Tensor, temperature: float) -> Tensor:
    """Return T² KL(softmax(target / T) || softmax(output / T)), mean over rows of logits: (n, k).

    >>> t = torch.tensor([[2.0, 0.0]])
    >>> distillation(t, t, 4.0).item()
    0.0
    """
    log_p = F.log_softmax(target / temperature, dim=1)
    log_q = F.log_softmax(output / temperature, dim=1)
    return F.kl_div(log_q, log_p, reduction="batchmean", log_target=True) * temperature**2
