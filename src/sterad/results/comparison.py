"""Which methods are better than others, and which only look so: the one rule behind every mark."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sterad.results.statistics import Summary, summarize
from sterad.results.student_t import two_sided_p

SIGNIFICANCE = 0.05
"""Chance of a false difference that is accepted within a column."""
FEWEST = 3
"""Common seeds without which two methods are not compared: two say next to nothing of a spread."""
RULE = (
    "Bold: the best mean and, where methods are significantly worse, all above the best of those. "
    "Underlined: the same among the rest. Significant: paired t-test over common seeds, two-sided, "
    "at 5 % after Holm's correction within the column"
)
"""What marks mean; the footnote of every table."""
BRIEFLY = "Bold: best; underlined: second; where differences are real (paired t-test, Holm, 5 %)."
"""The same for a terminal."""
TOO_FEW = f"no other method shares {FEWEST} seeds with the best mean, too few to compare"
NO_DIFFERENCE = "no method is significantly worse than the best mean"

Seeds = Mapping[object, float]
"""The value of each seed of one method."""


@dataclass(frozen=True)
class Comparison:
    """A method against the best mean of its group, over the seeds that both have."""

    row: int
    against: int
    """The row with the best mean."""
    difference: Summary
    """Value of `against` minus that of `row`, seed by seed."""
    p: float
    """Two-sided p-value of the paired t-test."""
    corrected: float
    """The same after Holm's correction over the group."""


@dataclass(frozen=True)
class Standing:
    """How the methods of a column stand to one another."""

    best: frozenset[int] = frozenset()
    second: frozenset[int] = frozenset()
    comparisons: tuple[Comparison, ...] = ()
    unmarked: str = ""
    """Why nothing is marked; empty where something is or there is nothing to compare."""

    def mark(self, row: int) -> str:
        """Return best, second or nothing."""
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


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return p-values corrected for their number: the k-th smallest of m times m - k + 1.

    Sture Holm (1979): A simple sequentially rejective multiple test procedure. None is below the
    one before it, none above 1.

    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    corrected, floor = [0.0] * len(ps), 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        floor = min(1.0, max(floor, (len(ps) - place) * ps[index]))
        corrected[index] = floor
    return tuple(corrected)


def standing(column: Sequence[Seeds | None], higher_is_better: bool = True) -> Standing:
    """Apply `RULE` to the methods of a column; None is a method that takes no part."""
    sign = 1 if higher_is_better else -1
    values = {
        row: {seed: sign * value for seed, value in seeds.items()}
        for row, seeds in enumerate(column)
        if seeds
    }
    if len(values) < 2:
        return Standing()
    best, below, compared = _group(values, values)
    if not compared:
        return Standing(unmarked=TOO_FEW)
    if not below:
        return Standing(comparisons=compared, unmarked=NO_DIFFERENCE)
    second, _, further = _group(values, below)
    return Standing(best, second, (*compared, *further))


def _group(
    values: Mapping[int, Seeds], rows: Collection[int]
) -> tuple[frozenset[int], frozenset[int], tuple[Comparison, ...]]:
    """Return those that share the first place among `rows`, those below it, and the tests."""
    lead = max(rows, key=lambda row: (summarize(values[row].values()).mean, -row))
    compared = _against(lead, values, rows)
    means = {row: summarize(values[row].values()).mean for row in rows}
    worse = [
        means[one.row]
        for one in compared
        if one.corrected <= SIGNIFICANCE and one.difference.mean > 0
    ]
    # A noisy method may be too uncertain to be called worse, but is not marked above one that is.
    shared = {lead, *(one.row for one in compared)}
    below = frozenset(row for row in shared if worse and means[row] <= max(worse))
    return frozenset(shared) - below, below, compared


def _against(
    lead: int, values: Mapping[int, Seeds], rows: Collection[int]
) -> tuple[Comparison, ...]:
    found: list[tuple[int, Summary]] = []
    for row in sorted(rows):
        common = values[row].keys() & values[lead].keys()
        if row != lead and len(common) >= FEWEST:
            found.append((row, summarize(values[lead][s] - values[row][s] for s in common)))
    ps = [paired_p(difference) for _, difference in found]
    return tuple(
        Comparison(row, lead, difference, p, corrected)
        for (row, difference), p, corrected in zip(found, ps, holm(ps), strict=True)
    )
