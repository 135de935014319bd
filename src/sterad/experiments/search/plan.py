"""SearchPlan: which fields of a method are searched, on which images and seeds, in how many trials.

The default space is that of the paper.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sterad.errors import SteradError, suggest_name
from sterad.experiments.config import ComponentConfig, RunConfig
from sterad.experiments.search.equal_pixels import EQUAL_PIXELS_KEY, Adapted, PixelBudget
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
DIMENSION_KEYS = ("values", "low", "high", "log", "only")
Point = Mapping[str, Any]
"""A value for each dimension."""
TestedOn = Literal["validation", "test"]
SamplerName = Literal["grid", "tpe"]
DEFAULT_SEEDS: dict[TestedOn, tuple[int, ...]] = {
    "validation": (100, 101, 102),  # no table reports these
    "test": (0, 1, 2),  # the choice of the paper
}
DEFAULT_VALIDATION = 0.1
"""Share of the training images that is held out if the settings give none."""
DEFAULT_TPE_TRIALS = 50


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


@dataclass(frozen=True)
class SearchPlan:
    """A space and a config; a point is scored by its mean final average accuracy over the seeds."""

    config: RunConfig
    space: Space
    seeds: tuple[int, ...]
    sampler: SamplerName = "tpe"
    trials: int = DEFAULT_TPE_TRIALS
    prune: bool = True
    budget: PixelBudget | None = None
    """What each point takes, if the space asks for equal pixels."""

    @classmethod
    def create(
        cls,
        config: RunConfig,
        space: Space,
        tested_on: TestedOn = "validation",
        seeds: Sequence[int] = (),
        sampler: SamplerName = "tpe",
        trials: int | None = None,
        prune: bool = True,
        pixels: float | None = None,
    ) -> "SearchPlan":
        """Fill in defaults and refuse contradictory options."""
        validation = config.settings.validation
        if tested_on == "test" and validation:
            raise SteradError(
                f"validation {validation} holds out training images, but the search is tested on "
                "the test images: give one of the two"
            )
        validation = (validation or DEFAULT_VALIDATION) if tested_on == "validation" else 0.0
        seeds = tuple(dict.fromkeys(seeds)) or DEFAULT_SEEDS[tested_on]
        config = replace(config, settings=replace(config.settings, validation=validation))
        budget = None
        if space.adapted is not None:
            budget = PixelBudget.create(config, space.adapted, pixels)
        elif pixels is not None:
            raise SteradError(
                f"pixels {pixels:.0f} have no effect on a space without {EQUAL_PIXELS_KEY}: leave "
                "them out, or give --space combinations"
            )
        trials = _count_trials(space, sampler, trials)
        return cls(config, space, seeds, sampler, trials, prune, budget)

    def build_method(self, point: Point) -> ComponentConfig:
        """Return the method of a point, at equal cost; raise RejectedError if there is none."""
        method = self.space.build_method(point)
        return method if self.budget is None else self.budget.adapt(method)

    def values(self, point: Point) -> dict[str, Any]:
        """Return the searched values of a point that have an effect, and the one chosen for it."""
        values = self.space.active_values(point)
        if self.budget is not None:
            name = self.budget.adapted.name
            values[name] = getattr(self.build_method(point).fields, name)
        return values

    def configs(self, point: Point) -> tuple[RunConfig, ...]:
        """Return the runs of a point, one per seed."""
        config = replace(self.config, method=self.build_method(point))
        settings = self.config.settings
        return tuple(replace(config, settings=replace(settings, seed=seed)) for seed in self.seeds)

    @property
    def name(self) -> str:
        """Return a name with a hash of all that affects the scores, equal on every machine."""
        config = self.config
        values = config.to_dict() | {"seed": None, "seeds": self.seeds}
        values["space"] = [asdict(dimension) for dimension in self.space.dimensions]
        if self.budget is not None:
            values["equal_pixels"] = [asdict(self.budget.adapted), self.budget.pixels]
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:10]
        return "-".join((config.method.name, config.dataset.name, config.stream.name, digest))

    @property
    def test_data(self) -> str:
        """Describe the images on which the accuracy is measured."""
        share = self.config.settings.validation
        return f"{share:.0%} of the training images, held out" if share else "the test images"


def _count_trials(space: Space, sampler: SamplerName, trials: int | None) -> int:
    if sampler == "tpe":
        return int(min(trials or DEFAULT_TPE_TRIALS, space.size))
    if space.ranges:
        raise SteradError(
            f"a grid cannot cover the range of {', '.join(space.ranges)}: give a list of values, "
            "or --sampler tpe"
        )
    if not space.points:
        raise SteradError(
            f"the grid has {space.size:.0f} points, too many to list: give a smaller --space, or "
            "--sampler tpe"
        )
    if trials is not None and space.size > trials:
        raise SteradError(
            f"the grid has {space.size:.0f} points and {trials} trials are allowed: give "
            f"--trials {space.size:.0f}, a smaller --space, or --sampler tpe"
        )
    return int(space.size)
