"""Interleaved timing: contenders take turns, so that whatever else the machine does slows all."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

Act = Callable[[], object]


@dataclass(frozen=True)
class Spread:
    """The median of some numbers and their quartiles."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: list[float]) -> "Spread":
        """Summarize at least one number.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, low=1.5, high=2.5)
        """
        if len(values) == 1:
            return Spread(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Spread(median, low, high)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Timings:
    """Seconds of each contender, round by round."""

    seconds: Mapping[str, list[float]]

    def of(self, name: str) -> Spread:
        """Return the seconds of one contender."""
        return Spread.of(self.seconds[name])

    def fastest(self, *names: str) -> str:
        """Return the one of `names` with the least median."""
        return min(names, key=lambda name: self.of(name).median)

    def ratio(self, name: str, other: str) -> Spread:
        """Return how many times as long as `other` one took, compared within each round."""
        return Spread.of([one / two for one, two in self._pairs(name, other)])

    def above(self, name: str, other: str) -> Spread:
        """Return how many seconds longer than `other` one took, compared likewise."""
        return Spread.of([one - two for one, two in self._pairs(name, other)])

    def _pairs(self, name: str, other: str) -> Iterator[tuple[float, float]]:
        return zip(self.seconds[name], self.seconds[other], strict=True)


@dataclass(frozen=True)
class Turns:
    """How often contenders take their turns: the shorter they are, the more a ratio needs."""

    rounds: int
    """The least number of rounds that count."""
    seconds: float = 0.0
    """How long rounds go on at least."""


def interleaved(contenders: Mapping[str, Act], turns: Turns) -> Timings:
    """Time one call of each contender in each round; the first round does not count.

    Every other round goes backwards, so that nobody always follows the same neighbor.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    began = 0.0
    for turn in count(-1):
        now = time.perf_counter()
        if turn <= 0:  # what the first round compiles is no time that was given to turns
            began = now
        elif turn >= turns.rounds and now - began >= turns.seconds:
            break
        order = list(contenders.items())
        for name, act in order if turn % 2 == 0 else reversed(order):
            before = time.perf_counter()
            act()
            after = time.perf_counter()
            if turn >= 0:
                seconds[name].append(after - before)
    return Timings(seconds)
