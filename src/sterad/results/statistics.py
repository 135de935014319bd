"""Mean, spread, interval and ranks over seeds, as pure functions of numbers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sterad.errors import SteradError
from sterad.results.student_t import quantile

CONFIDENCE = 0.95
"""How often an interval of ours covers the true mean."""


@dataclass(frozen=True)
class Summary:
    """What several seeds say together."""

    mean: float
    std: float | None
    """Sample standard deviation (divisor n - 1); None for a single value, which has no spread."""
    n: int

    @property
    def margin(self) -> float | None:
        """Half the width of the t-interval of the mean: t s / √n with n - 1 degrees of freedom."""
        if self.std is None:
            return None
        return quantile(CONFIDENCE, self.n - 1) * self.std / math.sqrt(self.n)


def summarize(values: Iterable[float]) -> Summary:
    """Return mean, sample standard deviation and count: s² = Σ (v - mean)² / (n - 1).

    >>> summarize([0.25, 0.5, 0.75])
    Summary(mean=0.5, std=0.25, n=3)
    >>> summarize([0.25])
    Summary(mean=0.25, std=None, n=1)
    """
    known = list(values)
    if not known:
        raise SteradError("no values to summarize: the mean needs at least one run")
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return Summary(mean, None, 1)
    squares = math.fsum((value - mean) ** 2 for value in known)
    return Summary(mean, math.sqrt(squares / (len(known) - 1)), len(known))


def ranks(values: Sequence[float]) -> tuple[float, ...]:
    """Return the place of each value, 1 for the largest; equal values share the mean of theirs.

    >>> ranks([0.5, 0.9, 0.5, 0.1])
    (2.5, 1.0, 2.5, 4.0)
    """
    above = [sum(other > value for other in values) for value in values]
    level = [sum(other == value for other in values) for value in values]
    return tuple(a + (n + 1) / 2 for a, n in zip(above, level, strict=True))
