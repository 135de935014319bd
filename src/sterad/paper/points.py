"""Points: accuracies under one set of settings, of the paper or of our runs, in percent."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from sterad.paper.numbers import Number, numbers
from sterad.paper.protocol import essential, expected
from sterad.results.grouping import Settings
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize


@dataclass(frozen=True)
class Point:
    """Mean and spread over the runs that differ in nothing but the seed."""

    settings: Settings
    """What decides the accuracy, by dotted names."""
    mean: float
    std: float | None
    """None for a single run."""
    n: int
    seeds: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """Say it as tables do."""
        spread = "" if self.std is None else f" ± {self.std:.2f}"
        return f"{self.mean:.2f}{spread} ({self.n} {'run' if self.n == 1 else 'runs'})"


def points_of(records: Iterable[RunRecord]) -> tuple[Point, ...]:
    """Group records by what decides their accuracy; a seed that comes twice counts once."""
    groups: dict[frozenset[tuple[str, object]], dict[int, RunRecord]] = {}
    for record in records:
        key = frozenset(essential(record.config).items())
        groups.setdefault(key, {}).setdefault(record.config.get("seed", 0), record)
    return tuple(_point(dict(key), found) for key, found in groups.items())


def _point(settings: Settings, found: dict[int, RunRecord]) -> Point:
    summary = summarize(100 * record.final_average_accuracy for record in found.values())
    ordered = dict(sorted(settings.items()))
    return Point(ordered, summary.mean, summary.std, summary.n, frozenset(found))


def point_of(number: Number) -> Point:
    """Return a number of the paper as a point."""
    return Point(expected(number.settings), number.mean, number.std, number.runs)


@cache
def paper_points() -> tuple[Point, ...]:
    """Return all numbers of the paper that runs can be held against, as points."""
    return tuple(point_of(number) for number in numbers() if not number.quoted)


def standard_errors(first: Point, second: Point) -> float | None:
    """Return by how many standard errors the first mean lies above the second.

    This is the one rule of every verdict. Both spreads are pooled,
    s² = ((n₁ - 1) s₁² + (n₂ - 1) s₂²) / (n₁ + n₂ - 2), and the standard error of the difference is
    s √(1/n₁ + 1/n₂): a single run borrows the spread of the other side. Where neither side has a
    spread nobody knows.

    >>> a, b = Point({}, 50.0, 1.0, 5), Point({}, 49.0, 1.0, 5)
    >>> [round(standard_errors(a, other) or 0, 3) for other in (b, Point({}, 49.0, None, 1))]
    [1.581, 0.913]
    """
    known = [(point.n - 1, point.std) for point in (first, second) if point.std is not None]
    freedom = sum(n for n, _ in known)
    pooled = math.sqrt(sum(n * std**2 for n, std in known) / freedom) if freedom else 0.0
    error = pooled * math.sqrt(1 / first.n + 1 / second.n)
    return (first.mean - second.mean) / error if error else None
