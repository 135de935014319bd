"""NCM: the class with the nearest mean, the plainest learner on features.

Thomas Mensink, Jakob Verbeek, Florent Perronnin, Gabriela Csurka: Distance-Based Image
Classification: Generalizing to New Classes at Near-Zero Cost. IEEE TPAMI 35(11), 2013

For each row h of class c:
  1. scale h to unit length, if `normalize`;
  2. update the count and the mean μ_c of its class, and the mean variance v around the means.
The score of a class is -‖h - μ_c‖² / 2v, up to a term that all classes share: the log-likelihood of
isotropic Gaussians, so that its softmax is a probability.

It is exact: any order of rows and any splitting into batches give the same scores, up to rounding.
Memory: k·d numbers for k classes and d features.
Differences from the paper: no metric is learned.
"""

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers.closed_form import LinearScores
from sterad.devices import to_device
from sterad.methods.base.closed_form import ClosedForm, check_statistic
from sterad.methods.base.learner import METHODS, Problem


@dataclass(frozen=True)
class NCMConfig:
    """The fields of the nearest class mean."""

    normalize: bool = False
    """Scale each row to unit length first."""


@METHODS.register("ncm", alias=("nearest-class-mean",))
class NCM(ClosedForm):
    """A running mean for each class."""

    Config = NCMConfig
    config: NCMConfig

    def __init__(self, config: NCMConfig, problem: Problem) -> None:
        """Start without a row."""
        super().__init__(config, problem)
        self.squares = self.zeros()
        """Sum of squared distances of all rows from the means of their classes."""

    def embed(self, x: Tensor) -> Tensor:
        """Return the rows, scaled to unit length if the config says so."""
        return F.normalize(x) if self.config.normalize else x

    def accumulate(self, rows: list[int], before: Tensor, after: Tensor) -> None:
        """Add the squared distances."""
        self.squares = self.squares + (before * after).sum()

    def copy_statistics(self) -> None:
        """Do nothing: `accumulate` makes a new sum."""

    def solve(self) -> LinearScores:
        """Return the Gaussian log-likelihoods as linear scores."""
        counts, means = self.class_statistics()
        variance = self.squares / (counts.sum() * self.features)
        # With one row per class the variance is 0; any positive one gives the same predictions.
        variance = variance.where(variance > 0, 1.0)
        center = counts @ means / counts.sum()
        weights = (means - center).T / variance
        return LinearScores(center, weights, -((means - center).T * weights).sum(dim=0) / 2)

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics."""
        return super().state_dict() | {"squares": self.squares.clone()}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits this learner."""
        super().check_state(state)
        check_statistic(state["squares"], self.squares, "squares")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict(state)
        self.squares = to_device(state["squares"], self.device).clone()
