"""The claims of the paper, and the comparisons of points that each of them is made of."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sterad.paper.numbers import numbers
from sterad.paper.points import Point, standard_errors
from sterad.paper.protocol import Difference, around, differences, expected, raw_protocol
from sterad.results.grouping import Settings

Spec = tuple[Any, ...] | str
"""Values of an axis, or how to find them."""


@dataclass(frozen=True)
class Claim:
    """Along an axis, all else equal, better values have a higher accuracy than worse ones."""

    sentence: str
    where: str
    """The tables or the figure that it is read from."""
    studies: tuple[str, ...]
    """The study files that run all that it needs."""
    axis: str
    better: Spec
    worse: Spec
    nearest: float | None
    methods: tuple[str, ...]
    """Methods that it is about; all where empty."""
    within: Mapping[str, Sequence[Any]]
    same: tuple[str, ...]
    """Fields of methods that must be equal too when methods are compared."""
    references: tuple[Settings, ...]
    """What stands around the methods in the paper's own runs."""

    def admits(self, point: Point) -> bool:
        """Say whether a point is one that the claim speaks of."""
        if self.methods and point.settings.get("method.name") not in self.methods:
            return False
        return all(value_of(point, path) in values for path, values in self.within.items())

    def pairs(self, found: Mapping[Any, Point]) -> Iterator[tuple[Point, Point]]:
        """Yield what must be better with what must be worse, among points by value of the axis."""
        if len(found) < 2:
            return
        better = self._chosen(self.better, found)
        worse = [v for v in self._chosen(self.worse, found) if v not in better]
        for left in better:
            yield from ((found[left], found[right]) for right in worse)

    def _chosen(self, spec: Spec, found: Mapping[Any, Point]) -> list[Any]:
        if not isinstance(spec, str):
            return [value for value in spec if value in found]
        if spec == "others":
            return list(found)
        if spec == "nearest":
            return [min(found, key=lambda value: abs(value - (self.nearest or 0)))]
        return [max(found) if spec == "largest" else min(found)]


@dataclass(frozen=True)
class Comparison:
    """Two points that a claim puts in an order."""

    better: Point
    worse: Point

    @property
    def against(self) -> bool:
        """Whether it speaks against the claim."""
        return self.better.mean < self.worse.mean

    @property
    def errors(self) -> float | None:
        """Standard errors in favour of the claim, below 0 against it; None for single runs."""
        return standard_errors(self.better, self.worse)

    @property
    def strength(self) -> tuple[bool, float]:
        """Rank of how much it speaks for the claim; single runs count by their difference."""
        errors = self.errors
        return not self.against, self.better.mean - self.worse.mean if errors is None else errors


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim."""
    raw = tomllib.loads(files(__package__).joinpath("claims.toml").read_text(encoding="utf-8"))
    return tuple(map(_claim, raw["claim"]))


def _claim(raw: Mapping[str, Any]) -> Claim:
    tables: list[int] = raw.get("tables", [])
    mine = [number for number in numbers() if number.table.number in tables and not number.quoted]
    studies = dict.fromkeys(number.table.study for number in mine) or (raw["study"],)
    methods = tuple(raw.get("methods", ()))
    own = [raw["protocol"] | {"method": name} for name in methods] if "protocol" in raw else []
    spec = {k: raw[k] if isinstance(raw[k], str) else tuple(raw[k]) for k in ("better", "worse")}
    return Claim(
        sentence=raw["sentence"],
        where=_tables(tables) or f"figure {raw['figure']}",
        studies=tuple(studies),
        axis=raw["axis"],
        nearest=raw.get("nearest"),
        methods=methods,
        within=raw.get("within", {}),
        same=tuple(raw.get("same", ())),
        references=_distinct(raw["axis"], [*(number.settings for number in mine), *own]),
        **spec,
    )


def asked(axis: str) -> tuple[str, ...]:
    """Return the settings that a question along an axis leaves open."""
    return ("stream.name", "stream.scale") if axis == "stream.name" else (axis,)


def _distinct(axis: str, settings: Sequence[Mapping[str, Any]]) -> tuple[Settings, ...]:
    found = [around(expected(one), asked(axis)) for one in settings]
    return tuple({frozenset(one.items()): one for one in found}.values())


def _tables(numbers: Sequence[int]) -> str:
    return ("tables " if len(numbers) > 1 else "table ") * bool(numbers) + " and ".join(
        map(str, numbers)
    )


def value_of(point: Point, path: str) -> Any:
    """Return a setting of a point, also one that is at the value which means nothing special."""
    return point.settings.get(path, raw_protocol()["neutral"].get(path))


def comparisons(claim: Claim, points: Sequence[Point]) -> tuple[Comparison, ...]:
    """Return all pairs of points that differ in nothing but what the claim is about."""
    groups: dict[frozenset[Any], dict[Any, list[Point]]] = {}
    for point in filter(claim.admits, points):
        values = groups.setdefault(_rest(claim, point), {})
        values.setdefault(value_of(point, claim.axis), []).append(point)
    return tuple(
        Comparison(*pair)
        for values in groups.values()
        for pair in claim.pairs({v: _plainest(found) for v, found in values.items()})
    )


def _rest(claim: Claim, point: Point) -> frozenset[Any]:
    def equal(path: str) -> bool:
        if claim.axis == "method.name":
            return path in claim.same or not path.startswith("method.")
        return path not in asked(claim.axis)

    return frozenset((path, value) for path, value in point.settings.items() if equal(path))


def _plainest(found: Sequence[Point]) -> Point:
    """Return the point whose method is nearest to the released one, never the one that did best."""
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda p: (len(method_differences(p)), -p.n, str(p.settings)))


def method_differences(point: Point) -> tuple[Difference, ...]:
    """Return in what the fields of a point's method are not the released ones."""
    named = {part: point.settings[f"{part}.name"] for part in ("method", "dataset", "stream")}
    found = differences(point.settings, expected(named))
    return tuple(one for one in found if one.path.startswith("method."))
