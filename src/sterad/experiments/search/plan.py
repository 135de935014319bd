"""SearchPlan: a space, on which images and seeds its points are scored, and in how many trials."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sterad.errors import SteradError
from sterad.experiments.config import ComponentConfig, RunConfig
from sterad.experiments.search.equal_pixels import EQUAL_PIXELS_KEY, PixelBudget
from sterad.experiments.search.space import Point, Space

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
