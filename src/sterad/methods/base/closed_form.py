"""ClosedForm: the base of learners on features, which keep running statistics and solve for scores.

A row h of class c updates, in float64 (on the CPU for MPS):
  1. the count n_c;
  2. the mean μ_c, by (h - μ_c) / n_c;
  3. the scatter of rows around the mean of their class, by Welford's update for a block of rows:
     S += Σ (h - μ_c before)(h - μ_c after)ᵀ, which is exact for several rows of one class.
After any order of rows and any splitting into batches these equal the sums over all rows, up to
rounding. Nothing cancels if all rows have a large common offset: only differences are squared, and
the mean of a new class starts at its first row. Costs do not depend on the number of rows seen.

Rows wait until a block is full, because one large matrix product is several times as fast as many
small ones. Scores are solved from the statistics and the waiting rows when they are needed, once,
and kept until the next row. That changes neither, so that predictions leave all later bits equal.
"""

import math
from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from sterad.devices import to_device, to_double
from sterad.engine.engine import RowGuard
from sterad.errors import SteradError
from sterad.methods.base.learner import Cost, Learner, Problem, check_batch, check_inputs
from sterad.saved_state import check_labels, check_like
from sterad.streams import Batch

PANEL_COLUMNS = 96
"""Columns of a scatter that are updated by one product; those above the diagonal are skipped."""
MIN_CLASS_CAPACITY = 8


class ClosedForm(Learner):
    """Counts and means of the classes; a method adds its scatter and solves for its scores."""

    default_encoder: ClassVar[str] = "flatten"
    trains_encoder: ClassVar[bool] = False
    block_rows: ClassVar[int] = 128
    """Rows that wait before they are added to the statistics together."""

    def __init__(self, config: Any, problem: Problem) -> None:
        """Start without a class."""
        super().__init__(config, problem)
        self.device = to_double(torch.zeros(0, device=problem.execution.device)).device
        self.inputs = math.prod(problem.input_shape)
        self.row_of: dict[int, int] = {}
        """The row of each label in `counts` and `means`, in order of appearance."""
        self.counts = self.zeros(MIN_CLASS_CAPACITY)
        """Rows of each class; only the first `used` entries count, the others are capacity."""
        self.means = self.zeros(MIN_CLASS_CAPACITY, self.features)
        self.used = 0
        """Classes in the statistics; those of `row_of` beyond them have waiting rows only."""
        self.waiting: list[Tensor] = []
        """Inputs that are not in the statistics yet: batches (n, inputs)."""
        self.waiting_rows: list[int] = []
        """Rows of their classes."""
        self.guard: RowGuard | None = None
        """Refuses rows that are far too large; None: no row is refused."""
        self._solution: Any = None
        self._is_shared = False
        """Whether another learner may have the same tensors, so that they must not change."""

    @property
    def features(self) -> int:
        """The number of features of a row."""
        return self.inputs

    @property
    def uses_seed(self) -> bool:
        """Return False: nothing is drawn."""
        return False

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return no cost: there is no network."""
        return Cost()

    def zeros(self, *shape: int) -> Tensor:
        """Return float64 zeros beside the statistics."""
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    def embed(self, x: Tensor) -> Tensor:
        """Return the features of float64 rows x: (n, inputs)."""
        return x

    @abstractmethod
    def accumulate(self, rows: list[int], before: Tensor, after: Tensor) -> None:
        """Add samples to the scatter.

        rows: of their classes in `means`; before, after: (n, d) differences from the means of their
        classes before and after the update of the means.
        """

    @abstractmethod
    def copy_statistics(self) -> None:
        """Replace the scatter by a copy, so that `accumulate` leaves the original as it is."""

    @abstractmethod
    def solve(self) -> Any:
        """Return what `class_scores` needs, from the statistics alone; no row is waiting."""

    def class_scores(self, h: Tensor, solution: Any) -> Tensor:
        """Return (n, k) scores of the seen classes, in ascending order, for features h: (n, d)."""
        return torch.addmm(solution.bias, h - solution.center, solution.weights)

    def observe(self, batch: Batch) -> None:
        """Let the rows wait for a full block, then update the statistics."""
        check_batch(batch, self.problem)
        x = to_device(batch.x, self.device).to(torch.float64, copy=True).flatten(1)
        if self.guard is not None:
            self.guard.check(x, int(self.counts.sum()) + len(self.waiting_rows))
        labels, known = batch.y.tolist(), len(self.row_of)
        self.waiting_rows += [self.row_of.setdefault(y, len(self.row_of)) for y in labels]
        if len(self.row_of) > known:
            self.seen = torch.tensor(sorted(self.row_of))
        self.waiting.append(x)
        self._solution = None
        if len(self.waiting_rows) >= self.block_rows:
            self._absorb()

    def consolidate(self) -> None:
        """Solve for the scores, unless there was no row since the last time."""
        if not self.row_of:
            raise SteradError("no row has been learned: observe a batch before you evaluate")
        if self._solution is None:
            self._solution = self._up_to_date().solve()

    @property
    def solution(self) -> Any:
        """What `class_scores` needs, for all rows so far."""
        self.consolidate()
        return self._solution

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return float64 scores of all rows so far, also without a call of `consolidate()`."""
        check_inputs(x, self.problem)
        h = self.embed(to_device(x, self.device).double().flatten(1))
        return self.class_scores(h, self.solution).cpu(), self.seen

    def immediate_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same as `scores`."""
        return self.scores(x)

    def class_statistics(self) -> tuple[Tensor, Tensor]:
        """Return counts (k,) and means (k, d) of the seen classes, in ascending order."""
        order = to_device(torch.tensor(self.rows_by_label()), self.device)
        return self.counts[order], self.means[order]

    def rows_by_label(self) -> list[int]:
        """Return the rows of the seen classes, in ascending order of their labels."""
        return [self.row_of[label] for label in self.seen.tolist()]

    def state_dict(self) -> dict[str, Any]:
        """Return labels in order of appearance, the statistics and the waiting rows."""
        waiting = [*self.waiting, self.zeros(0, self.inputs)]
        guarded = {} if self.guard is None else {"largest_row": self.guard.largest}
        return (
            super().state_dict()
            | guarded
            | {
                "labels": torch.tensor(list(self.row_of), dtype=torch.int64),
                "counts": self.counts[: self.used].clone(),
                "means": self.means[: self.used].clone(),
                "waiting": torch.cat(waiting),
                "waiting_rows": torch.tensor(self.waiting_rows, dtype=torch.int64),
            }
        )

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits this learner, before any of it is loaded."""
        seen, labels, counts = state["seen"], state["labels"], state["counts"]
        check_labels(seen, "seen")
        check_like(labels, seen, "labels")
        if not torch.equal(labels.sort().values, seen):
            raise ValueError("labels must be those of seen")
        check_like(state.get("largest_row", 0.0), 0.0, "largest_row")
        rows, used = state["waiting_rows"], min(len(counts), len(seen))
        check_like(rows, seen.new_zeros(rows.numel()), "waiting_rows")
        check_statistic(counts, self.zeros(used), "counts")
        check_statistic(state["means"], self.zeros(used, self.features), "means")
        check_statistic(state["waiting"], self.zeros(len(rows), self.inputs), "waiting")
        if bool((counts < 1).any()) or not torch.equal(counts, counts.round()):
            raise ValueError("counts must be whole numbers from 1")
        if len(rows) >= self.block_rows:
            raise ValueError(f"waiting_rows must be fewer than {self.block_rows}")
        classes = set(rows.tolist())
        if not classes <= set(range(len(seen))) or not set(range(used, len(seen))) <= classes:
            raise ValueError("waiting_rows must be rows of labels, with all that have no count")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; the solution is computed again from equal bits."""
        self.check_state(state)
        super().load_state_dict(state)
        self.guard = None if self.guard is None else RowGuard(state.get("largest_row", 0.0))
        self.row_of = {label: row for row, label in enumerate(state["labels"].tolist())}
        self.counts, self.means, waiting = (
            to_device(state[name], self.device).clone() for name in ("counts", "means", "waiting")
        )
        self.used, self.waiting_rows = len(self.counts), state["waiting_rows"].tolist()
        self.waiting = [waiting] if len(waiting) else []
        self._solution = None

    def _up_to_date(self) -> "ClosedForm":
        """Return this learner, or a copy to whose statistics the waiting rows are added."""
        if not self.waiting:
            return self
        other = self.fork()
        other._absorb()
        return other

    def fork(self) -> Self:
        """Return a copy that learns on its own; both share statistics until one changes them."""
        other = copy(self)
        other.row_of, other.guard = dict(self.row_of), copy(self.guard)
        other.waiting, other.waiting_rows = list(self.waiting), list(self.waiting_rows)
        self._is_shared = other._is_shared = True
        return other

    def _absorb(self) -> None:
        """Add the waiting rows to the statistics."""
        if self._is_shared:
            self.counts, self.means = self.counts.clone(), self.means.clone()
            self.copy_statistics()
            self._is_shared = False
        h, rows = self.embed(torch.cat(self.waiting)), self.waiting_rows
        self.waiting, self.waiting_rows = [], []
        self._add_classes_of(rows, h)
        index = to_device(torch.tensor(rows), self.device)
        before = h - self.means[index]
        self.counts.index_add_(0, index, self.counts.new_ones(len(rows)))
        self.means.index_add_(0, index, before / self.counts[index].unsqueeze(1))
        self.accumulate(rows, before, h - self.means[index])

    def _add_classes_of(self, rows: list[int], h: Tensor) -> None:
        """Start the mean of each new class at its first row."""
        missing = len(self.row_of) - len(self.counts)
        if missing > 0:  # at least doubled, so that all classes together take linear time
            added = max(MIN_CLASS_CAPACITY, len(self.counts), missing)
            self.counts = torch.cat([self.counts, self.zeros(added)])
            self.means = torch.cat([self.means, self.zeros(added, self.features)])
        for position, row in enumerate(rows):
            if row == self.used:  # rows are numbered in order of appearance
                self.means[row] = h[position]
                self.used += 1


class PooledClosedForm(ClosedForm):
    """One scatter around the class means, pooled over all classes: d² numbers."""

    def __init__(self, config: Any, problem: Problem) -> None:
        """Start with a scatter of zero."""
        super().__init__(config, problem)
        self.scatter = self.zeros(self.features, self.features)
        """On and below the diagonal."""

    def accumulate(self, rows: list[int], before: Tensor, after: Tensor) -> None:
        """Add the products of the differences."""
        add_products(self.scatter, before, after)

    def copy_statistics(self) -> None:
        """Copy the scatter."""
        self.scatter = self.scatter.clone()

    def within_scatter(self) -> Tensor:
        """Return the scatter of all rows around the means of their classes: (d, d)."""
        return self.scatter.tril().add_(self.scatter.tril(-1).T)

    def state_dict(self) -> dict[str, Any]:
        """Return the statistics of the classes and the scatter."""
        return super().state_dict() | {"scatter": self.scatter.clone()}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits this learner."""
        super().check_state(state)
        check_statistic(state["scatter"], self.scatter, "scatter")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        super().load_state_dict(state)
        self.scatter = to_device(state["scatter"], self.device).clone()


def add_products(scatter: Tensor, before: Tensor, after: Tensor) -> None:
    """Add Σ before ⊗ after to `scatter`: (d, d), on and below the diagonal; the sum is symmetric.

    before, after: (n, d).
    """
    for start in range(0, len(scatter), PANEL_COLUMNS):
        stop = min(start + PANEL_COLUMNS, len(scatter))
        scatter[start:stop, :stop].addmm_(before[:, start:stop].T, after[:, :stop])


def check_statistic(value: Any, like: Tensor, name: str) -> None:
    """Raise ValueError unless `value` has the shape and dtype of `like` and is finite."""
    check_like(value, like, name)
    if not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name} must be finite")
