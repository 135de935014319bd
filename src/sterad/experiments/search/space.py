"""Space: the fields of a method that are searched, read from a TOML file.

The default space is that of the paper; others ship with the studies and are called by name.
"""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sterad.errors import SteradError, suggest_name
from sterad.experiments.config import ComponentConfig
from sterad.experiments.search.equal_pixels import EQUAL_PIXELS_KEY, Adapted
from sterad.experiments.study_files import STUDY_FOLDERS, toml_files
from sterad.experiments.toml_file import read_toml, rename_keys, resolve_fields
from sterad.files import reading
from sterad.methods import METHODS
from sterad.validation import build, check_value, field_types, unknown_field

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

PAPER_SPACE = Path(__file__).with_name("paper.toml")
MAX_LISTED_POINTS = 100_000
"""Larger spaces are not enumerated."""
DEFAULT_VALUE = "default"
"""Stands in a list for the default of the field."""
DIMENSION_KEYS = ("values", "low", "high", "log", "only")
Point = Mapping[str, Any]
"""A value for each dimension."""


@dataclass(frozen=True)
class Dimension:
    """A field of a method and its possible values: a list, or the range from `low` to `high`."""

    name: str
    values: tuple[Any, ...] = ()
    """Empty for a range."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    """Whether a range is sampled uniformly in the logarithm, as suits learning rates."""
    only: Mapping[str, Any] = field(default_factory=dict)
    """Values of other fields that this field requires; with others it has no effect."""

    @classmethod
    def from_toml(cls, name: str, raw: Any, fields: type[Any]) -> "Dimension":
        """Read `[1, 2]`, `{ values = [1, 2] }` or `{ low = 1e-4, high = 0.1, log = true }`.

        A value "default" is the default of the field.

        fields: the dataclass that has the field `name`.
        """
        table = {"values": raw} if isinstance(raw, list) else raw
        if not isinstance(table, dict):
            raise SteradError(
                f"{name} = {raw!r} is neither a list of values nor a range: give [{raw!r}], or "
                "{ low = ..., high = ..., log = true }"
            )
        for key in table:
            if key not in DIMENSION_KEYS:
                raise unknown_field(key, DIMENSION_KEYS, f"the dimension {name!r}")
        conditions = check_value("only", table.get("only", {}), dict)
        only = resolve_fields(conditions, fields, "the method")
        hint = field_types(fields)[name]
        if "values" not in table:
            return cls._range_from_toml(name, table, hint, only)
        values = check_value(name, table["values"], list)
        if not values:
            raise SteradError(f"{name} has an empty list: give at least one value")
        # TOML has no word for None, the default of many fields.
        own = {one.name: one.default for one in dataclasses.fields(fields)}[name]
        values = [own if value == DEFAULT_VALUE else value for value in values]
        unique = tuple(dict.fromkeys(check_value(name, value, hint) for value in values))
        return cls(name, unique, only=only)

    @classmethod
    def _range_from_toml(
        cls, name: str, table: dict[str, Any], hint: Any, only: Mapping[str, Any]
    ) -> "Dimension":
        if not {"low", "high"} <= table.keys():
            raise SteradError(f"{name} has neither values nor low and high: give one or the other")
        low, high = (check_value(name, table[key], hint) for key in ("low", "high"))
        if not all(isinstance(end, int | float) and math.isfinite(end) for end in (low, high)):
            raise SteradError(
                f"{name} from {low!r} to {high!r} is not a range of numbers: give a list"
            )
        log = check_value("log", table.get("log", False), bool)
        if not low < high or (log and low <= 0):
            rule = "0 < low < high" if log else "low < high"
            raise SteradError(f"{name} from {low} to {high} is not a range: give {rule}")
        return cls(name, (), low, high, log, only)

    def distribution(self) -> "BaseDistribution":
        """Return the distribution of Optuna for this dimension."""
        from optuna.distributions import (
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        if self.values:
            return CategoricalDistribution(self.values)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high, log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Space:
    """Dimensions to search, and a method with the values of its other fields."""

    method: ComponentConfig
    dimensions: tuple[Dimension, ...]
    adapted: Adapted | None = None
    """The field that is chosen for each point, so that all cost the same; None: costs differ."""

    def active_values(self, point: Point) -> dict[str, Any]:
        """Return the values of a point that have an effect: Adam, for example, has no momentum."""
        fields = asdict(self.method.fields) | dict(point)
        return {
            dimension.name: point[dimension.name]
            for dimension in self.dimensions
            if all(fields[name] == value for name, value in dimension.only.items())
        }

    def build_method(self, point: Point) -> ComponentConfig:
        """Return the method with the active values of a point; other fields keep their values."""
        fields = asdict(self.method.fields) | self.active_values(point)
        return ComponentConfig(self.method.name, build(type(self.method.fields), fields))

    def key(self, point: Point) -> str:
        """Return a text that is equal for points with equal active values."""
        return json.dumps(self.active_values(point), sort_keys=True, default=str)

    @cached_property
    def size(self) -> float:
        """Number of distinct points; infinite if a dimension is a range."""
        return math.inf if self.ranges else len(self.points) or self._product_size

    @cached_property
    def points(self) -> dict[str, Point]:
        """Distinct points by key; empty if there are too many to list."""
        if self._product_size > MAX_LISTED_POINTS:
            return {}
        names = [dimension.name for dimension in self.dimensions]
        product = itertools.product(*(dimension.values for dimension in self.dimensions))
        points = [dict(zip(names, values, strict=True)) for values in product]
        return {self.key(point): point for point in points}

    @property
    def _product_size(self) -> int:
        return math.prod(len(dimension.values) for dimension in self.dimensions)

    def distributions(self) -> "dict[str, BaseDistribution]":
        """Return the search space in the form that Optuna takes."""
        return {dimension.name: dimension.distribution() for dimension in self.dimensions}

    @property
    def ranges(self) -> list[str]:
        """Names of the dimensions that are ranges."""
        return [dimension.name for dimension in self.dimensions if not dimension.values]

    def drop_dimensions(self, names: Iterable[str]) -> "Space":
        """Return the space without some dimensions: their fields keep the method's values."""
        dropped = set(names)
        searched = tuple(dim for dim in self.dimensions if dim.name not in dropped)
        if not searched:
            raise SteradError(
                f"no field of {self.method.name} is left to search, as every field of the space "
                "is given: leave one of them out"
            )
        return replace(self, dimensions=searched)


def find_space(name: str | Path) -> Path:
    """Return the file of a space, which is given by its path or by its name.

    >>> find_space("combinations").name
    'combinations.toml'
    """
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path
    files = toml_files(tuple(folder / "spaces" for folder in STUDY_FOLDERS))
    if str(name) not in files:
        raise SteradError(
            f"unknown space {str(name)!r}: {suggest_name(str(name), list(files))}known are "
            f"{', '.join(sorted(files))}; or give the path of a .toml file"
        )
    return files[str(name)]


def read_space(method: ComponentConfig, file: Path | None = None) -> Space:
    """Return the space of a method from a file with one table per method, or from the paper.

    file: its path, or the name of a space that ships with the package.
    """
    source = PAPER_SPACE if file is None else find_space(file)
    tables = read_toml(source, "the space")
    with reading(source, "correct it"):
        tables = rename_keys(tables, METHODS.resolve)
    if method.name not in tables:
        owner = f"the space {str(file)!r}" if file else "the paper"
        raise SteradError(
            f"{owner} has no search space for {method.name!r}, only for {', '.join(tables)}: give "
            f"--space FILE.toml with a table [{method.name}] of lists, such as lr = [0.01, 0.1]"
        )
    table, fields = tables[method.name], type(method.fields)
    try:
        if not isinstance(table, dict) or not table:
            raise SteradError(
                f"{table!r} is not a table of lists: give, for example, lr = [0.01, 0.1]"
            )
        adapted = table.pop(EQUAL_PIXELS_KEY, None)
        adapted = None if adapted is None else Adapted.from_toml(adapted, fields)
        raw = resolve_fields(table, fields, "the method")
        if adapted is not None and adapted.name in raw:
            raise SteradError(
                f"{adapted.name} is searched and chosen by {EQUAL_PIXELS_KEY}: leave one out"
            )
        dimensions = [Dimension.from_toml(name, value, fields) for name, value in raw.items()]
    except SteradError as error:
        raise SteradError(f"in [{method.name}] of {str(source)!r}: {error}") from error
    return Space(method, tuple(dimensions), adapted)
