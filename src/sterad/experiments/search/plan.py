"""SearchPlan: what is searched, on which images and seeds, and how far."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.search.space import Point, Space
from sterad.validation import check_fields

Objective = Literal["validation", "test"]
SEEDS: dict[Objective, tuple[int, ...]] = {"validation": (100, 101, 102), "test": (0, 1, 2)}
"""Seeds that no table reports, and the paper's own choice."""
SHARE = 0.1
"""Share of the training images that is held out where the settings name none."""
TRIALS = 50
"""Trials of TPE where nobody says how many."""


@dataclass(frozen=True)
class SearchPlan:
    """A space around a config; a point is worth its mean final average accuracy over the seeds."""

    config: RunConfig
    space: Space
    seeds: tuple[int, ...]
    sampler: Literal["grid", "tpe"] = "tpe"
    trials: int = TRIALS
    prune: bool = True

    @classmethod
    def of(
        cls,
        config: RunConfig,
        space: Space,
        objective: Objective = "validation",
        seeds: Sequence[int] = (),
        sampler: Literal["grid", "tpe"] = "tpe",
        trials: int | None = None,
        prune: bool = True,
    ) -> "SearchPlan":
        """Settle what was left open, and refuse what contradicts itself."""
        share = config.settings.validation
        if objective == "test" and share:
            raise SteradError(
                f"validation {share} holds training images out and the objective is the test "
                "images: leave one of the two away"
            )
        share = (share or SHARE) if objective == "validation" else 0.0
        seeds = tuple(dict.fromkeys(seeds)) or SEEDS[objective]
        settled = replace(config, settings=replace(config.settings, validation=share))
        for seed in seeds:
            check_fields(replace(settled.settings, seed=seed))
        return cls(settled, space, seeds, sampler, _trials(space, sampler, trials), prune)

    def configs(self, point: Point) -> tuple[RunConfig, ...]:
        """Return the runs of a point, a seed each."""
        made = replace(self.config, method=self.space.at(point))
        settings = self.config.settings
        return tuple(replace(made, settings=replace(settings, seed=seed)) for seed in self.seeds)

    @property
    def name(self) -> str:
        """Return a name that the same question has on every machine: what counts is in its hash."""
        config = self.config
        plain = config.to_dict() | {"seed": None, "seeds": self.seeds}
        plain["space"] = [asdict(one) for one in self.space.dimensions]
        digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:10]
        return "-".join((config.method.name, config.dataset.name, config.stream.name, digest))

    @property
    def tested(self) -> str:
        """Say what the accuracy is measured on."""
        share = self.config.settings.validation
        return f"{share:.0%} of the training images, held out" if share else "the test images"


def _trials(space: Space, sampler: str, trials: int | None) -> int:
    if trials is not None and trials < 1:
        raise SteradError(f"trials {trials} is below 1: give the points to try")
    if sampler == "tpe":
        return int(min(trials or TRIALS, space.size))
    if space.ranges:
        raise SteradError(
            f"a grid has no points in the range of {', '.join(space.ranges)}: give a list of "
            "values, or --sampler tpe"
        )
    if space.size > (space.size if trials is None else trials) or not space.points:
        raise SteradError(
            f"the grid has {space.size:.0f} points and {trials or 'nobody asked for so many'} "
            f"trials are allowed: give --trials {space.size:.0f}, a smaller --space, or "
            "--sampler tpe"
        )
    return int(space.size)
