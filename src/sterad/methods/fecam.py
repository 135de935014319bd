"""FeCAM: Mahalanobis distances with a covariance for each class, on unit rows.

Dipam Goswami, Yuyang Liu, Bartłomiej Twardowski, Joost van de Weijer: FeCAM: Exploiting the
Heterogeneity of Class Distributions in Exemplar-Free Continual Learning. NeurIPS 2023,
https://arxiv.org/abs/2309.14062

For each row x of class c:
  1. h = x / ‖x‖;
  2. update the count, the mean μ_c and the scatter of its class.
To predict: Σ_c + γ v_c I, with the covariance Σ_c and its mean variance v_c, is scaled to a
correlation matrix R_c, and the score of a class is -(h - μ_c)ᵀ R_c⁻¹ (h - μ_c).

It is exact: any order of rows and any splitting into batches give the same scores, up to rounding.
Memory: 2·k·d² numbers for k classes and d features, 0.4 GB for 100 classes and 512 features. A row
costs O(d²); a prediction costs O(k·d²), and the first one after a row also O(d³) for each class
that has new rows.
Differences from the paper: no Tukey transformation of the features.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers.closed_form import add_to_diagonal, factorize
from sterad.devices import to_device
from sterad.methods.base.closed_form import ClosedForm, add_products, check_statistic
from sterad.methods.base.learner import METHODS, Problem
from sterad.validation import Positive


@dataclass(frozen=True)
class FeCAMConfig:
    """The paper's settings."""

    strength: Positive = 1.0
    """Multiple γ of the mean variance that is added to the diagonal of each covariance."""


@METHODS.register("fecam")
class FeCAM(ClosedForm):
    """A mean and a covariance for each class."""

    Config = FeCAMConfig
    config: FeCAMConfig
    block_rows = 1
    """No row waits: a prediction would factorize the classes of all waiting rows again."""

    def __init__(self, config: FeCAMConfig, problem: Problem) -> None:
        """Start without a class."""
        super().__init__(config, problem)
        self.scatters: list[Tensor] = []
        """Of each class, in order of appearance: (d, d), on and below the diagonal."""
        self.shared_rows: set[int] = set()
        """Classes whose scatter another learner may have as well, see `fork`."""
        self.factors: dict[int, Tensor] = {}
        """Cholesky factors of correlation matrices, of classes without rows since; no state."""

    def embed(self, x: Tensor) -> Tensor:
        """Return the rows scaled to unit length."""
        return F.normalize(x)

    def accumulate(self, rows: list[int], before: Tensor, after: Tensor) -> None:
        """Add each row to the scatter of its class."""
        while len(self.scatters) < len(self.row_of):
            self.scatters.append(self.zeros(self.features, self.features))
        for row in dict.fromkeys(rows):
            positions = [position for position, other in enumerate(rows) if other == row]
            chosen = to_device(torch.tensor(positions), self.device)
            if row in self.shared_rows:
                self.scatters[row] = self.scatters[row].clone()
                self.shared_rows.remove(row)
            add_products(self.scatters[row], before[chosen], after[chosen])
            self.factors.pop(row, None)

    def copy_statistics(self) -> None:
        """Copy the list only: `accumulate` copies the matrices that it changes."""
        self.scatters, self.factors = list(self.scatters), dict(self.factors)
        self.shared_rows = set(range(len(self.scatters)))

    def solve(self) -> list[tuple[Tensor, Tensor]]:
        """Return the mean and the Cholesky factor of each seen class, in ascending order."""
        rows = self.rows_by_label()
        for row in rows:
            if row not in self.factors:
                self.factors[row] = self._factor(self.scatters[row])
        return [(self.means[row], self.factors[row]) for row in rows]

    def class_scores(self, h: Tensor, solution: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Return the negative squared distances to all classes."""
        distances = [
            torch.linalg.solve_triangular(factor, (h - mean).T, upper=False).square().sum(dim=0)
            for mean, factor in solution
        ]
        return -torch.stack(distances, dim=1)

    def _factor(self, scatter: Tensor) -> Tensor:
        """Return the factor of the shrunk correlation matrix; the number of rows cancels in it."""
        variance = scatter.trace() / len(scatter)
        # A class of one row has no covariance: its correlation matrix is the identity.
        added = (self.config.strength * variance).where(variance > 0, 1.0)
        matrix = add_to_diagonal(scatter.tril() + scatter.tril(-1).T, added)
        scale = matrix.diagonal().rsqrt()
        correlation = matrix * scale.unsqueeze(0) * scale.unsqueeze(1)
        return factorize(correlation, "set a larger strength")

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics."""
        return super().state_dict() | {"scatters": [one.clone() for one in self.scatters]}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits this learner."""
        super().check_state(state)
        scatters, zeros = state["scatters"], self.zeros(self.features, self.features)
        if not isinstance(scatters, list) or len(scatters) != len(state["seen"]):
            raise ValueError("scatters must be a list with one matrix for each class seen")
        for number, scatter in enumerate(scatters):
            check_statistic(scatter, zeros, f"scatters.{number}")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict(state)
        self.scatters = [to_device(one, self.device).clone() for one in state["scatters"]]
        self.factors = {}
