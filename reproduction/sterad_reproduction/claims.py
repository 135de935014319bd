"""The claims of the paper, and the comparisons of results that support or contradict them."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sterad.results.grouping import Settings
from sterad_reproduction.numbers import Result, load_numbers, standard_errors
from sterad_reproduction.protocol import (
    Difference,
    find_differences,
    load_protocol,
    paper_settings,
    without_method,
)

Selection = tuple[Any, ...] | str
"""Values of an axis, or a rule that selects them: largest, smallest, nearest, others."""


@dataclass(frozen=True)
class Claim:
    """Along an axis, all else equal, better values have a higher accuracy than worse ones."""

    sentence: str
    source: str
    """The tables or the figure of the paper."""
    studies: tuple[str, ...]
    """The study files that run everything it needs."""
    axis: str
    better: Selection
    worse: Selection
    target: float | None
    """The value that "nearest" refers to."""
    methods: tuple[str, ...]
    """Methods that it applies to; all if empty."""
    within: Mapping[str, Sequence[Any]]
    """Settings that it is restricted to."""
    matched: tuple[str, ...]
    """Fields of methods that must be equal as well when methods are compared."""
    references: tuple[Settings, ...]
    """Settings of the paper's own runs, without those of the method."""

    def includes(self, result: Result) -> bool:
        """Return whether the claim applies to a result."""
        if self.methods and result.settings.get("method.name") not in self.methods:
            return False
        return all(get_setting(result, path) in values for path, values in self.within.items())

    def pairs(self, by_value: Mapping[Any, Result]) -> Iterator[tuple[Result, Result]]:
        """Yield pairs (better, worse) of results, which are given by their value of the axis."""
        if len(by_value) < 2:
            return
        better = self._select(self.better, by_value)
        worse = [v for v in self._select(self.worse, by_value) if v not in better]
        for left in better:
            yield from ((by_value[left], by_value[right]) for right in worse)

    def _select(self, selection: Selection, by_value: Mapping[Any, Result]) -> list[Any]:
        if not isinstance(selection, str):
            return [value for value in selection if value in by_value]
        if selection == "others":
            return list(by_value)
        if selection == "nearest":
            return [min(by_value, key=lambda value: abs(value - (self.target or 0)))]
        return [max(by_value) if selection == "largest" else min(by_value)]


@dataclass(frozen=True)
class Comparison:
    """Two results that a claim orders."""

    better: Result
    worse: Result

    @property
    def contradicts(self) -> bool:
        """Whether it contradicts the claim."""
        return self.better.mean < self.worse.mean

    @property
    def standard_errors(self) -> float | None:
        """Standard errors in favor of the claim, negative if against it; None for single runs."""
        return standard_errors(self.better, self.worse)

    @property
    def strength(self) -> tuple[bool, float]:
        """Sort key: how strongly it supports the claim; single runs count by their difference."""
        errors = self.standard_errors
        difference = self.better.mean - self.worse.mean
        return not self.contradicts, difference if errors is None else errors


@cache
def load_claims() -> tuple[Claim, ...]:
    """Return every claim."""
    raw = tomllib.loads(files(__package__).joinpath("claims.toml").read_text(encoding="utf-8"))
    return tuple(map(_read_claim, raw["claim"]))


def _read_claim(raw: Mapping[str, Any]) -> Claim:
    tables: list[int] = raw.get("tables", [])
    numbers = [n for n in load_numbers() if n.table.number in tables and not n.is_quoted]
    studies = dict.fromkeys(number.table.study for number in numbers) or (raw["study"],)
    methods = tuple(raw.get("methods", ()))
    figures = [raw["protocol"] | {"method": name} for name in methods] if "protocol" in raw else []
    selections = {
        key: raw[key] if isinstance(raw[key], str) else tuple(raw[key])
        for key in ("better", "worse")
    }
    return Claim(
        sentence=raw["sentence"],
        source=_name_tables(tables) or f"figure {raw['figure']}",
        studies=tuple(studies),
        axis=raw["axis"],
        target=raw.get("target"),
        methods=methods,
        within=raw.get("within", {}),
        matched=tuple(raw.get("matched", ())),
        references=_references(raw["axis"], [*(n.settings for n in numbers), *figures]),
        **selections,
    )


def axis_paths(axis: str) -> tuple[str, ...]:
    """Return the settings that vary along an axis: blurry streams also have a scale."""
    return ("stream.name", "stream.scale") if axis == "stream.name" else (axis,)


def _references(axis: str, settings: Sequence[Mapping[str, Any]]) -> tuple[Settings, ...]:
    found = [without_method(paper_settings(values), axis_paths(axis)) for values in settings]
    return tuple({frozenset(values.items()): values for values in found}.values())


def _name_tables(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    return f"table{'s' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"


def get_setting(result: Result, path: str) -> Any:
    """Return a setting of a result, or its default if the result does not list it."""
    return result.settings.get(path, load_protocol()["default"].get(path))


def find_comparisons(claim: Claim, results: Sequence[Result]) -> tuple[Comparison, ...]:
    """Return all pairs of results that differ only in what the claim is about."""
    groups: dict[frozenset[Any], dict[Any, list[Result]]] = {}
    for result in filter(claim.includes, results):
        by_value = groups.setdefault(_equal_settings(claim, result), {})
        by_value.setdefault(get_setting(result, claim.axis), []).append(result)
    return tuple(
        Comparison(*pair)
        for by_value in groups.values()
        for pair in claim.pairs({v: _closest_to_released(found) for v, found in by_value.items()})
    )


def _equal_settings(claim: Claim, result: Result) -> frozenset[Any]:
    """Return the settings in which compared results are equal, and their precision."""

    def must_be_equal(path: str) -> bool:
        if claim.axis == "method.name":
            return path in claim.matched or not path.startswith("method.")
        return path not in axis_paths(claim.axis)

    settings = result.settings | {"precision": result.precision}
    return frozenset((path, value) for path, value in settings.items() if must_be_equal(path))


def _closest_to_released(found: Sequence[Result]) -> Result:
    """Return the result whose method is closest to the released one, whatever its accuracy."""
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda r: (len(method_differences(r)), -r.n, str(r.settings)))


def method_differences(result: Result) -> tuple[Difference, ...]:
    """Return the differences between the fields of a result's method and the released ones."""
    names = {part: result.settings[f"{part}.name"] for part in ("method", "dataset", "stream")}
    found = find_differences(result.settings, paper_settings(names))
    return tuple(difference for difference in found if difference.path.startswith("method."))
