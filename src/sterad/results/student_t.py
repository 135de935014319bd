"""Student's t: tail probabilities and quantiles through the regularized incomplete beta function.

With ν degrees of freedom, P(|T| > t) = I_x(ν/2, 1/2) at x = ν / (ν + t²).
"""

import math
from functools import lru_cache

from sterad.errors import SteradError

_MOST_TERMS = 100_000
_TINY = 1e-300  # what a vanishing denominator of the continued fraction becomes (Lentz)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return I_x(a, b), the share of the Beta(a, b) law below x; a, b > 0.

    The continued fraction converges fast left of the mean; right of it the other tail is taken.

    >>> round(incomplete_beta(0.25, 1.0, 1.0), 12), round(incomplete_beta(0.5, 3.0, 3.0), 12)
    (0.25, 0.5)
    """
    if not (0 <= x <= 1 and a > 0 and b > 0):
        raise SteradError(f"I_{x}({a}, {b}) does not exist: x lies in [0, 1], a and b above 0")
    return _share_below(x, 1 - x, a, b)


def _share_below(x: float, rest: float, a: float, b: float) -> float:
    """Return I_x(a, b) from x and 1 - x, each given to full precision."""
    if x == 0 or rest == 0:
        return float(rest == 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _share_below(rest, x, b, a)
    log_front = a * math.log(x) + b * math.log(rest) + math.lgamma(a + b)
    front = math.exp(log_front - math.lgamma(a) - math.lgamma(b)) / a
    return front * _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Return 1 / (1 + d₁ / (1 + d₂ / (1 + ...))), evaluated from the front by Lentz's method."""
    value, c, d = 1.0, 1.0, 0.0
    for term in range(1, _MOST_TERMS):
        coefficient = _coefficient(term, x, a, b)
        d = 1 / _not_zero(1 + coefficient * d)
        c = _not_zero(1 + coefficient / c)
        value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return 1 / value


def _coefficient(term: int, x: float, a: float, b: float) -> float:
    m = term // 2
    top = -(a + m) * (a + b + m) if term % 2 else m * (b - m)
    return top * x / ((a + term - 1) * (a + term))


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def two_sided_p(t: float, freedom: float) -> float:
    """Return P(|T| ≥ |t|) under Student's law with `freedom` degrees.

    >>> round(two_sided_p(1.0, 1), 12), two_sided_p(0.0, 5)
    (0.5, 1.0)
    """
    if freedom <= 0:
        raise SteradError(f"{freedom} degrees of freedom: a t-test needs at least two values")
    square = t * t
    if math.isinf(square):
        return 0.0
    whole = freedom + square
    return _share_below(freedom / whole, square / whole, freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def quantile(level: float, freedom: float) -> float:
    """Return the t with P(|T| ≤ t) = level: a mean ± t s/√n covers with that probability.

    >>> round(quantile(0.95, 9), 4)
    2.2622
    """
    if not 0 < level < 1:
        raise SteradError(f"level {level} is not a probability: give one between 0 and 1, as 0.95")
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > 1 - level:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if two_sided_p(middle, freedom) > 1 - level:
            low = middle
        else:
            high = middle
    return high
