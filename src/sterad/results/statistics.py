"""Statistics over seeds: mean, spread, intervals, ranks, and the rule behind all marks in tables.

With ν degrees of freedom, P(|T| > t) = I_x(ν/2, 1/2) at x = ν / (ν + t²), where I is the
regularized incomplete beta function.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

CONFIDENCE = 0.95
"""Coverage of the confidence intervals."""
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
_TINY = 1e-300  # replaces a vanishing denominator of the continued fraction (Lentz)

Seeds = Mapping[object, float]
"""The value of each seed of one method."""


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation over several seeds."""

    mean: float
    std: float | None
    """Sample standard deviation (divisor n - 1); None for a single value."""
    n: int

    @property
    def margin(self) -> float | None:
        """Half the width of the t-interval of the mean: t s / √n with n - 1 degrees of freedom."""
        if self.std is None:
            return None
        return t_quantile(CONFIDENCE, self.n - 1) * self.std / math.sqrt(self.n)


def summarize(values: Iterable[float]) -> Summary:
    """Return mean, sample standard deviation and count: s² = Σ (v - mean)² / (n - 1).

    >>> summarize([0.25, 0.5, 0.75])
    Summary(mean=0.5, std=0.25, n=3)
    >>> summarize([0.25])
    Summary(mean=0.25, std=None, n=1)
    """
    numbers = list(values)
    mean = fmean(numbers)
    if len(numbers) == 1:
        return Summary(mean, None, 1)
    squares = math.fsum((value - mean) ** 2 for value in numbers)
    return Summary(mean, math.sqrt(squares / (len(numbers) - 1)), len(numbers))


def rank_values(values: Sequence[float]) -> tuple[float, ...]:
    """Return the rank of each value, 1 for the largest; equal values share their mean rank.

    >>> rank_values([0.5, 0.9, 0.5, 0.1])
    (2.5, 1.0, 2.5, 4.0)
    """
    above = [sum(other > value for other in values) for value in values]
    return tuple(a + (values.count(v) + 1) / 2 for a, v in zip(above, values, strict=True))


def _beta_cdf(x: float, rest: float, a: float, b: float) -> float:
    """Return I_x(a, b) from x and rest = 1 - x, each given to full precision.

    The continued fraction converges fast below the mean; above it, use the symmetric tail.
    """
    if x == 0 or rest == 0:
        return float(rest == 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_cdf(rest, x, b, a)
    log_front = a * math.log(x) + b * math.log(rest) + math.lgamma(a + b)
    front = math.exp(log_front - math.lgamma(a) - math.lgamma(b)) / a
    return front * _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Return 1 / (1 + d₁ / (1 + d₂ / (1 + ...))), by Lentz's method."""
    value, c, d = 1.0, 1.0, 0.0
    for term in range(1, 100_000):
        m = term // 2
        top = -(a + m) * (a + b + m) if term % 2 else m * (b - m)
        coefficient = top * x / ((a + term - 1) * (a + term))
        d = 1 / ((1 + coefficient * d) or _TINY)
        c = (1 + coefficient / c) or _TINY
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return 1 / value


def two_sided_p(t: float, freedom: float) -> float:
    """Return P(|T| ≥ |t|) for Student's t with `freedom` degrees of freedom.

    >>> round(two_sided_p(1.0, 1), 12), two_sided_p(0.0, 5)
    (0.5, 1.0)
    """
    square = t * t
    if math.isinf(square):
        return 0.0
    total = freedom + square
    return _beta_cdf(freedom / total, square / total, freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def t_quantile(level: float, freedom: float) -> float:
    """Return the t with P(|T| ≤ t) = level, by bisection.

    >>> round(t_quantile(0.95, 9), 4)
    2.2622
    """
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > 1 - level:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if two_sided_p(middle, freedom) > 1 - level:
            low = middle
        else:
            high = middle
    return high


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


def rank_methods(column: Sequence[Seeds], higher_is_better: bool = True) -> Ranking:
    """Apply `RULE` to the methods of a column; those without values are not compared."""
    sign = 1 if higher_is_better else -1
    values = {
        row: {seed: sign * value for seed, value in seeds.items()}
        for row, seeds in enumerate(column)
        if seeds
    }
    if len(values) < 2:
        return Ranking()
    best, below, comparisons = _split_group(values)
    if not comparisons:
        return Ranking(unmarked=TOO_FEW_SEEDS)
    if not below:
        return Ranking(comparisons=comparisons, unmarked=NO_DIFFERENCE)
    second, _, more = _split_group({row: values[row] for row in below})
    return Ranking(best, second, (*comparisons, *more))


def _split_group(
    values: Mapping[int, Seeds],
) -> tuple[frozenset[int], frozenset[int], tuple[Comparison, ...]]:
    """Return the rows that share first place, those below, and the tests."""
    means = {row: fmean(seeds.values()) for row, seeds in values.items()}
    leader = max(values, key=lambda row: (means[row], -row))
    comparisons = _compare(leader, values)
    worse = [
        means[test.row]
        for test in comparisons
        if test.corrected <= SIGNIFICANCE and test.difference.mean > 0
    ]
    # A noisy method may not be significantly worse, but must not be marked above one that is.
    compared = frozenset({leader, *(test.row for test in comparisons)})
    below = frozenset(row for row in compared if worse and means[row] <= max(worse))
    return compared - below, below, comparisons


def _compare(leader: int, values: Mapping[int, Seeds]) -> tuple[Comparison, ...]:
    best, differences = values[leader], {}
    for row in sorted(values.keys() - {leader}):
        common = values[row].keys() & best.keys()
        if len(common) >= MIN_COMMON_SEEDS:
            differences[row] = summarize(best[seed] - values[row][seed] for seed in common)
    ps = [paired_p(difference) for difference in differences.values()]
    return tuple(
        Comparison(row, leader, differences[row], p, corrected)
        for row, p, corrected in zip(differences, ps, correct_holm(ps), strict=True)
    )
