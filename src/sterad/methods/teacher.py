"""The momentum teacher: a slow copy of the student that any replay method can learn from.

Nicolas Michel, Maorong Wang, Ling Xiao, Toshihiko Yamasaki: Rethinking Momentum Knowledge
Distillation in Online Continual Learning. ICML 2024, https://arxiv.org/abs/2309.02870

After each step θ_T ← m θ_T + (1 - m) θ_S. What differs from the released code: the teacher starts
as a copy of the student instead of almost zero; running statistics of BatchNorm follow as the
weights do, and the teacher is in evaluation mode; only distillation is added to a method's loss,
not a further cross-entropy; the view that both see is augmented as in the method (there always by
the full one), and drawn anew also for ER; the student answers by default (there the average).
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network
from sterad.encoders.heads import last_layer
from sterad.validation import ADVANCED, BelowOne, NonNegative, Positive


@dataclass(frozen=True)
class TeacherConfig:
    """Whether and how a momentum teacher is learned from."""

    teacher: Literal["none", "ema"] = field(default="none", metadata=ADVANCED)
    """ema adds distillation from an exponential moving average of the weights."""
    teacher_momentum: BelowOne = field(default=0.99, metadata=ADVANCED)
    """Decay rate of the teacher's moving average, in [0, 1)."""
    teacher_weight: NonNegative = field(default=5.5, metadata=ADVANCED)
    """Weight of the distillation loss."""
    teacher_temperature: Positive = field(default=4.0, metadata=ADVANCED)
    """Temperature of the distilled posteriors."""
    predict_with: Literal["student", "teacher", "average"] = field(
        default="student", metadata=ADVANCED
    )
    """Weights to predict with: the student's, the teacher's or their average."""


class Teacher:
    """A network that follows another one slowly and has no gradients."""

    def __init__(self, student: Network, momentum: float) -> None:
        """Start as a copy."""
        self.network = deepcopy(student).eval().requires_grad_(False)
        self.momentum = momentum

    def __call__(self, x: Tensor) -> Tensor:
        """Return raw outputs for images on the device, without a graph."""
        with torch.no_grad():
            out: Tensor = self.network(x)
            return out

    @torch.no_grad()
    def follow(self, student: Network) -> None:
        """Move towards the student: weights and running statistics; counters are copied."""
        theirs = student.state_dict()
        for name, mine in self.network.state_dict().items():
            if mine.is_floating_point():
                mine.lerp_(theirs[name], 1 - self.momentum)
            else:
                mine.copy_(theirs[name])

    @torch.no_grad()
    def widen(self, student: Network) -> None:
        """Take new rows of the student's head as they are; old rows stay the teacher's."""
        mine, theirs = last_layer(self.network.head), last_layer(student.head)
        if mine is None or theirs is None:
            return
        for name, old in list(mine.named_parameters(recurse=False)):
            new = theirs.get_parameter(name).detach().clone()
            new[: len(old)] = old
            setattr(mine, name, torch.nn.Parameter(new, requires_grad=False))
        mine.out_features = theirs.out_features

    @torch.no_grad()
    def averaged(self, student: Network) -> Network:
        """Return a network with the mean of both weights and the student's running statistics."""
        between = deepcopy(student)
        for mine, theirs in zip(between.parameters(), self.network.parameters(), strict=True):
            mine.lerp_(theirs, 0.5)
        return between


def distillation(taught: Tensor, learned: Tensor, temperature: float) -> Tensor:
    """Return T² KL(softmax(taught / T) || softmax(learned / T)), mean over rows of logits: (n, k).

    >>> t = torch.tensor([[2.0, 0.0]])
    >>> distillation(t, t, 4.0).item()
    0.0
    """
    wanted = F.log_softmax(taught / temperature, dim=1)
    given = F.log_softmax(learned / temperature, dim=1)
    return F.kl_div(given, wanted, reduction="batchmean", log_target=True) * temperature**2
