"""Significance of differences between methods: the rule behind all marks in the tables."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sterad.results.statistics import Summary, summarize, two_sided_p

SIGNIFICANCE = 0.05
"""Accepted probability of a false difference within a column."""
MIN_COMMON_SEEDS = 3
"""Methods with fewer common seeds are not compared."""
RULE = (
    "Bold: the best mean and, if some methods are significantly worse, all means above the best of "
    "these. Underlined: the same among the remaining methods. Significant: paired t-test over "
    "common seeds, two-sided, 5 %, Holm's correction within the column"
)
"""The meaning of the marks; the footnote of every table."""
SHORT_RULE = "Bold: best; underlined: second (paired t-test, Holm, 5 %)."
"""The same for a terminal."""
TOO_FEW_SEEDS = f"no other method shares {MIN_COMMON_SEEDS} seeds with the best mean"
NO_DIFFERENCE = "no method is significantly worse than the best mean"

Seeds = Mapping[object, float]
"""The value of each seed of one method."""


@dataclass(frozen=True)
class Comparison:
    """A method compared with the best mean of its group, over their common seeds."""

    row: int
    best_row: int
    """The row with the best mean."""
    difference: Summary
    """Value of `best_row` minus that of `row`, seed by seed."""
    p: float
    """Two-sided p-value of the paired t-test."""
    corrected: float
    """The same after Holm's correction over the group."""


@dataclass(frozen=True)
class Ranking:
    """The best and second-best methods of a column, and the tests behind them."""

    best: frozenset[int] = frozenset()
    second: frozenset[int] = frozenset()
    comparisons: tuple[Comparison, ...] = ()
    unmarked: str = ""
    """Why nothing is marked; empty if something is, or if there is nothing to compare."""

    def mark(self, row: int) -> str:
        """Return "best", "second" or an empty string."""
        return "best" if row in self.best else "second" if row in self.second else ""


def paired_p(difference: Summary) -> float:
    """Return the two-sided p-value of paired differences: t = mean √n / s, n - 1 degrees.

    >>> round(paired_p(Summary(mean=0.02, std=0.01, n=4)), 4)
    0.028
    """
    if not difference.std:
        return float(difference.mean == 0)
    t = difference.mean * math.sqrt(difference.n) / difference.std
    return two_sided_p(t, difference.n - 1)


def correct_holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return p-values with Holm's correction: the k-th smallest of m times m - k + 1.

    Sture Holm (1979): A simple sequentially rejective multiple test procedure. Corrected values
    never decrease in this order and are at most 1.

    >>> [round(p, 4) for p in correct_holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    corrected, floor = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        floor = min(1.0, max(floor, (len(ps) - rank) * ps[index]))
        corrected[index] = floor
    return tuple(corrected)


def rank_methods(column: Sequence[Seeds | None], higher_is_better: bool = True) -> Ranking:
    """Apply `RULE` to the methods of a column; None is a method that is not compared."""
    sign = 1 if higher_is_better else -1
    values = {
        row: {seed: sign * value for seed, value in seeds.items()}
        for row, seeds in enumerate(column)
        if seeds
    }
    if len(values) < 2:
        return Ranking()
    best, below, comparisons = _split_group(values, values)
    if not comparisons:
        return Ranking(unmarked=TOO_FEW_SEEDS)
    if not below:
        return Ranking(comparisons=comparisons, unmarked=NO_DIFFERENCE)
    second, _, more = _split_group(values, below)
    return Ranking(best, second, (*comparisons, *more))


def _split_group(
    values: Mapping[int, Seeds], rows: Collection[int]
) -> tuple[frozenset[int], frozenset[int], tuple[Comparison, ...]]:
    """Return the rows that share first place among `rows`, those below, and the tests."""
    means = {row: summarize(values[row].values()).mean for row in rows}
    leader = max(rows, key=lambda row: (means[row], -row))
    comparisons = _compare(leader, values, rows)
    worse = [
        means[test.row]
        for test in comparisons
        if test.corrected <= SIGNIFICANCE and test.difference.mean > 0
    ]
    # A noisy method may not be significantly worse, but must not be marked above one that is.
    compared = {leader, *(test.row for test in comparisons)}
    below = frozenset(row for row in compared if worse and means[row] <= max(worse))
    return frozenset(compared) - below, below, comparisons


def _compare(
    leader: int, values: Mapping[int, Seeds], rows: Collection[int]
) -> tuple[Comparison, ...]:
    differences: list[tuple[int, Summary]] = []
    for row in sorted(rows):
        common = values[row].keys() & values[leader].keys()
        if row != leader and len(common) >= MIN_COMMON_SEEDS:
            paired = summarize(values[leader][seed] - values[row][seed] for seed in common)
            differences.append((row, paired))
    ps = [paired_p(difference) for _, difference in differences]
    return tuple(
        Comparison(row, leader, difference, p, corrected)
        for (row, difference), p, corrected in zip(differences, ps, correct_holm(ps), strict=True)
    )
