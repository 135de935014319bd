"""Interleaved timing: functions take turns, so that other load slows all of them alike."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np


@dataclass(frozen=True)
class Spread:
    """The median and the quartiles of measured values."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: list[float]) -> "Spread":
        """Summarize at least one value.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, low=1.5, high=2.5)
        """
        low, median, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        return Spread(median, low, high)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Timings:
    """The seconds of each function in each round."""

    seconds: Mapping[str, list[float]]

    def of(self, name: str) -> Spread:
        """Return the seconds of one function."""
        return Spread.of(self.seconds[name])

    def ratio(self, name: str, other: str) -> Spread:
        """Return the time of `name` over that of `other`, computed within each round."""
        return Spread.of([a / b for a, b in self._pairs(name, other)])

    def difference(self, name: str, other: str) -> Spread:
        """Return the time of `name` minus that of `other`, computed within each round."""
        return Spread.of([a - b for a, b in self._pairs(name, other)])

    def _pairs(self, name: str, other: str) -> Iterator[tuple[float, float]]:
        return zip(self.seconds[name], self.seconds[other], strict=True)


@dataclass(frozen=True)
class Rounds:
    """How many rounds are timed: at least `count`, and for at least `seconds`."""

    count: int
    seconds: float = 0.0
    clock: Callable[[], float] | None = None
    """Returns seconds (default: those that pass). Those of the processor, `time.process_time`,
    change less with other load, but add up over threads."""


def time_interleaved(functions: Mapping[str, Callable[[], object]], rounds: Rounds) -> Timings:
    """Call each function once per round and time it; the first round warms up and is discarded.

    Every other round runs backwards, so that no function always follows the same one.
    """
    order = list(functions.items())
    for _, function in reversed(order):
        function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    clock = rounds.clock or time.perf_counter
    start = clock()  # compilation in the warm-up round does not count
    for number in count():
        if number >= rounds.count and clock() - start >= rounds.seconds:
            break
        for name, function in order if number % 2 == 0 else reversed(order):
            before = clock()
            function()
            seconds[name].append(clock() - before)
    return Timings(seconds)
