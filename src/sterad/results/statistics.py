"""Statistics over seeds, as pure functions: mean, spread, confidence interval, ranks, Student's t.

With ν degrees of freedom, P(|T| > t) = I_x(ν/2, 1/2) at x = ν / (ν + t²), where I is the
regularized incomplete beta function.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sterad.errors import SteradError

CONFIDENCE = 0.95
"""Coverage of the confidence intervals."""
_MAX_TERMS = 100_000
_TINY = 1e-300  # replaces a vanishing denominator of the continued fraction (Lentz)


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
    if not numbers:
        raise SteradError("no values to summarize: the mean needs at least one run")
    mean = math.fsum(numbers) / len(numbers)
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
    level = [sum(other == value for other in values) for value in values]
    return tuple(a + (n + 1) / 2 for a, n in zip(above, level, strict=True))


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return I_x(a, b), the distribution function of Beta(a, b) at x; a, b > 0.

    The continued fraction converges fast below the mean; above it, use the symmetric tail.

    >>> round(incomplete_beta(0.25, 1.0, 1.0), 12), round(incomplete_beta(0.5, 3.0, 3.0), 12)
    (0.25, 0.5)
    """
    if not (0 <= x <= 1 and a > 0 and b > 0):
        raise SteradError(f"I_{x}({a}, {b}) is not defined: x must be in [0, 1], a and b above 0")
    return _beta_cdf(x, 1 - x, a, b)


def _beta_cdf(x: float, rest: float, a: float, b: float) -> float:
    """Return I_x(a, b) from x and 1 - x, each given to full precision."""
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
    for term in range(1, _MAX_TERMS):
        coefficient = _coefficient(term, x, a, b)
        d = 1 / _avoid_zero(1 + coefficient * d)
        c = _avoid_zero(1 + coefficient / c)
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return 1 / value


def _coefficient(term: int, x: float, a: float, b: float) -> float:
    m = term // 2
    top = -(a + m) * (a + b + m) if term % 2 else m * (b - m)
    return top * x / ((a + term - 1) * (a + term))


def _avoid_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def two_sided_p(t: float, freedom: float) -> float:
    """Return P(|T| ≥ |t|) for Student's t with `freedom` degrees of freedom.

    >>> round(two_sided_p(1.0, 1), 12), two_sided_p(0.0, 5)
    (0.5, 1.0)
    """
    if freedom <= 0:
        raise SteradError(f"{freedom} degrees of freedom: a t-test needs at least two values")
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
    if not 0 < level < 1:
        raise SteradError(
            f"level {level} is not a probability: use one between 0 and 1, such as 0.95"
        )
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > 1 - level:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if two_sided_p(middle, freedom) > 1 - level:
            low = middle
        else:
            high = middle
    return high
