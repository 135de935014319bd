"""Mean and spread over seeds, as pure functions of numbers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sterad.errors import SteradError


@dataclass(frozen=True)
class Summary:
    """What several seeds say together."""

    mean: float
    std: float | None
    """Sample standard deviation (divisor n - 1); None for a single value, which has no spread."""
    n: int


def summarise(values: Iterable[float]) -> Summary:
    """Return mean, sample standard deviation and count: s² = Σ (v - mean)² / (n - 1).

    >>> summarise([0.25, 0.5, 0.75])
    Summary(mean=0.5, std=0.25, n=3)
    >>> summarise([0.25])
    Summary(mean=0.25, std=None, n=1)
    """
    known = list(values)
    if not known:
        raise SteradError("no values to summarise: the mean needs at least one run")
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return Summary(mean, None, 1)
    squares = math.fsum((value - mean) ** 2 for value in known)
    return Summary(mean, math.sqrt(squares / (len(known) - 1)), len(known))
