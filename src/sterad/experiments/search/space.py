"""Space: the fields of a method that are searched; the paper's where no file is given."""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sterad.errors import SteradError
from sterad.experiments.config import ComponentConfig
from sterad.experiments.search.dimension import Dimension
from sterad.experiments.toml_file import read_toml
from sterad.methods import METHODS
from sterad.validation import build, field_names, field_types, unknown_field

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

PAPER = Path(__file__).with_name("paper.toml")
MANY = 100_000
"""Points above which nobody wants a list of them."""
Point = Mapping[str, Any]
"""A value for each dimension."""


@dataclass(frozen=True)
class Space:
    """Dimensions around a method whose other fields are settled."""

    method: ComponentConfig
    dimensions: tuple[Dimension, ...]

    def values(self, point: Point) -> dict[str, Any]:
        """Return what of a point means something: Adam has no momentum, say."""
        around = dataclasses.asdict(self.method.fields) | dict(point)
        return {
            one.name: point[one.name]
            for one in self.dimensions
            if all(around[name] == value for name, value in one.only.items())
        }

    def at(self, point: Point) -> ComponentConfig:
        """Return the method with the values of a point; the rest stays as it is."""
        fields = dataclasses.asdict(self.method.fields) | self.values(point)
        return ComponentConfig(self.method.name, build(type(self.method.fields), fields))

    def key(self, point: Point) -> str:
        """Return the same text for points that mean the same."""
        return json.dumps(self.values(point), sort_keys=True, default=str)

    @cached_property
    def size(self) -> float:
        """Points that differ; infinite with a range among the dimensions."""
        return math.inf if self.ranges else len(self.points) or self._upper

    @cached_property
    def points(self) -> dict[str, Point]:
        """Every point once, by key; none where they are too many to be listed."""
        if self.ranges or self._upper > MANY:
            return {}
        return {self.key(point): point for point in self._product()}

    @property
    def _upper(self) -> int:
        return math.prod(len(one.values) for one in self.dimensions)

    def _product(self) -> Iterator[Point]:
        names = [one.name for one in self.dimensions]
        for chosen in itertools.product(*(one.values for one in self.dimensions)):
            yield dict(zip(names, chosen, strict=True))

    def distributions(self) -> "dict[str, BaseDistribution]":
        """Return what Optuna calls a search space."""
        return {one.name: one.distribution() for one in self.dimensions}

    @property
    def ranges(self) -> list[str]:
        """Names of the dimensions that are not lists."""
        return [one.name for one in self.dimensions if not one.values]

    def without(self, names: Iterable[str]) -> "Space":
        """Return the space in which some fields are settled and not searched."""
        kept = tuple(one for one in self.dimensions if one.name not in set(names))
        if not kept:
            raise SteradError(
                f"nothing of {self.method.name} is left to search, as every field of the space is "
                "given: leave one of them out"
            )
        return Space(self.method, kept)


def read_space(method: ComponentConfig, file: Path | None = None) -> Space:
    """Return the space of a method in a file with a table a method, or the paper's."""
    source = file or PAPER
    tables = {
        METHODS.resolve(name): table for name, table in read_toml(source, "the space").items()
    }
    if method.name not in tables:
        whose = f"the space {str(file)!r} has" if file else "the paper gives"
        raise SteradError(
            f"{whose} no search space for {method.name!r}, only for {', '.join(tables)}: give "
            f"--space FILE.toml with a table [{method.name}] of lists, lr = [0.01, 0.1] say"
        )
    where, fields = f"[{method.name}] of {str(source)!r}", type(method.fields)
    try:
        return Space(method, _dimensions(tables[method.name], fields))
    except SteradError as error:
        raise SteradError(f"in {where}: {error}") from error


def _dimensions(table: Any, fields: type[Any]) -> tuple[Dimension, ...]:
    if not isinstance(table, dict) or not table:
        raise SteradError(f"{table!r} is no table of lists: give lr = [0.01, 0.1], say")
    hints, known = field_types(fields), field_names(fields)
    named = {name.replace("-", "_"): raw for name, raw in table.items()}
    for name in named:
        if name not in known:
            raise unknown_field(name, known, "the method")
    made = tuple(Dimension.of(name, raw, hints[name]) for name, raw in named.items())
    for other in (other for one in made for other in one.only):
        if other not in known:
            raise unknown_field(other, known, "the method")
    return made
