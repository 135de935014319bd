"""The numbers of the paper's five tables, and the results of runs to compare them with."""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from sterad.results.grouping import Settings
from sterad.results.moments import with_other_classifiers
from sterad.results.record import RunRecord
from sterad.results.statistics import summarize
from sterad_reproduction.protocol import paper_settings, relevant_settings

_ROW_KEYS = ("accuracy", "printed", "quoted", "or_method")
"""Keys of a row that are no settings."""


@dataclass(frozen=True)
class Result:
    """Mean and standard deviation, in percent, over runs that differ only in the seed."""

    settings: Settings
    """The settings that determine the accuracy, by dotted names."""
    mean: float
    std: float | None
    """None for a single run."""
    n: int
    seeds: frozenset[int] = frozenset()
    records: tuple[RunRecord, ...] = field(default=(), compare=False, repr=False)
    """The runs, by seed; empty for a printed result."""
    precision: str = field(default="", compare=False)
    """In which the encoder was computed; empty for a printed result."""

    @property
    def text(self) -> str:
        """The result as tables print it."""
        spread = "" if self.std is None else f" ± {self.std:.2f}"
        return f"{self.mean:.2f}{spread} ({self.n} {'run' if self.n == 1 else 'runs'})"


@dataclass(frozen=True)
class Table:
    """One table of the paper."""

    number: int
    title: str
    study: str
    """The study file that runs all of it."""


@dataclass(frozen=True)
class Number:
    """One final average accuracy of the paper, in percent."""

    table: Table
    settings: Mapping[str, Any]
    """By option names of the command line; all else is the paper's usual protocol."""
    mean: float
    std: float
    runs: int
    is_printed: bool
    """False if the number is only in a comment of the paper's source."""
    is_quoted: bool
    """Whether the number is from another paper, so that runs are not compared with it."""
    or_method: str = ""
    """Another method that it may be, because the paper does not say; empty if it says."""

    @property
    def description(self) -> str:
        """The settings in one line, without the stream, which is that of the table."""
        names = (self.settings["method"], self.settings["dataset"])
        rest = {k: v for k, v in self.settings.items() if k not in ("method", "dataset", "stream")}
        return ", ".join((*names, *(f"{k.replace('_', ' ')} {v}" for k, v in rest.items())))

    @property
    def result(self) -> Result:
        """The number in the form of the results of runs."""
        return Result(paper_settings(self.settings), self.mean, self.std, self.runs)


@cache
def load_numbers() -> tuple[Number, ...]:
    """Return every number of every table, row by row."""
    raw = tomllib.loads(files(__package__).joinpath("tables.toml").read_text(encoding="utf-8"))
    return tuple(number for table in raw["table"] for number in _read_table(table))


def _read_table(raw: Mapping[str, Any]) -> Iterator[Number]:
    table = Table(raw["number"], raw["title"], raw["study"])
    for row in raw["rows"]:
        flags = (row.get("printed", True), row.get("quoted", False), row.get("or_method", ""))
        settings = {k: v for k, v in row.items() if k not in _ROW_KEYS}
        for column, text in zip(raw["columns"], row["accuracy"], strict=True):
            if text:
                mean, std = map(float, text.split("±"))
                full = settings | raw["fixed"] | column
                yield Number(table, full, mean, std, raw["runs"], *flags)


@cache
def paper_results() -> tuple[Result, ...]:
    """Return all numbers that runs can be compared with."""
    return tuple(number.result for number in load_numbers() if not number.is_quoted)


def group_runs(records: Iterable[RunRecord]) -> tuple[Result, ...]:
    """Group records by precision and the settings that determine the accuracy.

    Repeated seeds count once. Other classifiers of a run are groups of their own.
    """
    groups: dict[tuple[frozenset[tuple[str, object]], str], dict[int, RunRecord]] = {}
    for record in with_other_classifiers(records):
        settings = frozenset(relevant_settings(record.config).items())
        key = settings, str(record.execution.get("precision") or "float32")
        groups.setdefault(key, {}).setdefault(record.config.get("seed", 0), record)
    return tuple(_summarize_group(dict(key), p, by_seed) for (key, p), by_seed in groups.items())


def by_settings(results: Iterable[Result]) -> dict[frozenset[Any], tuple[Result, ...]]:
    """Return results by their settings: those of several precisions together, most runs first."""
    found: dict[frozenset[Any], list[Result]] = {}
    for result in results:
        found.setdefault(frozenset(result.settings.items()), []).append(result)
    return {
        key: tuple(sorted(of_key, key=lambda one: (-one.n, one.precision != "float32")))
        for key, of_key in found.items()
    }


def _summarize_group(settings: Settings, precision: str, by_seed: dict[int, RunRecord]) -> Result:
    summary = summarize(100 * record.final_average_accuracy for record in by_seed.values())
    ordered = dict(sorted(settings.items()))
    runs = tuple(by_seed[seed] for seed in sorted(by_seed))
    seeds = frozenset(by_seed)
    return Result(ordered, summary.mean, summary.std, summary.n, seeds, runs, precision)


def standard_errors(first: Result, second: Result) -> float | None:
    """Return the difference of two means, first minus second, in standard errors.

    All verdicts use this rule. The variances are pooled,
    s² = ((n₁ - 1) s₁² + (n₂ - 1) s₂²) / (n₁ + n₂ - 2), and the standard error of the difference is
    s √(1/n₁ + 1/n₂), so a single run uses the spread of the other side. None if neither side has
    a spread.

    >>> a, b = Result({}, 50.0, 1.0, 5), Result({}, 49.0, 1.0, 5)
    >>> [round(standard_errors(a, other) or 0, 3) for other in (b, Result({}, 49.0, None, 1))]
    [1.581, 0.913]
    """
    spreads = [(result.n - 1, result.std) for result in (first, second) if result.std is not None]
    freedom = sum(n for n, _ in spreads)
    pooled = math.sqrt(sum(n * std**2 for n, std in spreads) / freedom) if freedom else 0.0
    error = pooled * math.sqrt(1 / first.n + 1 / second.n)
    return (first.mean - second.mean) / error if error else None
