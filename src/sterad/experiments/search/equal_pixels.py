"""Equal cost: each point of a search passes the same number of pixels through its networks.

One field of the method is not searched but chosen for each point, so that a step takes as many
pixels as the search allows. What a step takes is measured by a dry run of a narrow network.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import ComponentConfig, RunConfig
from sterad.experiments.cost import size_of
from sterad.experiments.training_cost import training_cost
from sterad.methods import Learner
from sterad.methods.base.parts import make_retrieval
from sterad.methods.base.replay import Replay
from sterad.report.text import format_quantity
from sterad.streams import Batch, Boundary
from sterad.validation import build, check_value, field_types, unknown_field

EQUAL_PIXELS_KEY = "equal-pixels"
"""Key of a table of a space that is not a field of the method."""
TOLERANCE = 1.1
"""A point that cannot use the pixels of the search to within this factor is rejected."""
DRY_RUN_WIDTH = 2
"""Width of the network in a dry run: pixels do not depend on it."""


class RejectedError(SteradError):
    """A point that is not trained: its combination is refused, or its cost is not equal."""


@dataclass(frozen=True)
class Adapted:
    """The field that is chosen for each point, and its range."""

    name: str
    low: int
    high: int

    @classmethod
    def from_toml(cls, raw: Any, fields: type[Any]) -> "Adapted":
        """Read `{ field = "memory-batch", low = 8, high = 256 }`."""
        table = check_value(EQUAL_PIXELS_KEY, raw, dict)
        for key in table:
            if key not in ("field", "low", "high"):
                raise unknown_field(key, ("field", "low", "high"), EQUAL_PIXELS_KEY)
        name = check_value("field", table.get("field"), str).replace("-", "_")
        if name not in field_types(fields):
            raise unknown_field(name, tuple(field_types(fields)), "the method")
        low, high = (check_value(key, table.get(key), int) for key in ("low", "high"))
        if not 0 < low < high:
            raise SteradError(
                f"{EQUAL_PIXELS_KEY} from {low} to {high} is not a range: give 0 < low < high"
            )
        return cls(name, low, high)


@dataclass(frozen=True)
class PixelBudget:
    """The pixels per stream batch that each point of a search takes."""

    config: RunConfig
    adapted: Adapted
    pixels: float
    _choices: dict[str, ComponentConfig | str] = field(default_factory=dict, compare=False)
    """The method with the chosen value, or why it is rejected, by the text of its fields."""

    @classmethod
    def create(cls, config: RunConfig, adapted: Adapted, pixels: float | None) -> "PixelBudget":
        """Return the budget of `pixels`, or of the config's own method."""
        return cls(config, adapted, step_pixels(config) if pixels is None else float(pixels))

    def adapt(self, method: ComponentConfig) -> ComponentConfig:
        """Return the method with the value that makes its cost equal; raise RejectedError."""
        key = repr(method)
        if key not in self._choices:
            try:
                self._choices[key] = self._choose(method)
            except SteradError as error:
                self._choices[key] = str(error)
        if isinstance(choice := self._choices[key], str):
            raise RejectedError(choice)
        return choice

    def _choose(self, method: ComponentConfig) -> ComponentConfig:
        """Solve for the field: pixels are a constant and a share of each replayed image."""
        low, high, name = self.adapted.low, self.adapted.high, self.adapted.name
        high = max(low, min(high, self.config.settings.memory))
        first, second = low, low + 1
        pixels, more = (self._pixels_with(method, value) for value in (first, second))
        if more <= pixels:
            raise SteradError(f"{name} does not change the pixels of this method: adapt another")
        wanted = first + (self.pixels - pixels) / (more - pixels)
        value = math.floor(wanted + 1e-6)
        if value < low:
            raise SteradError(
                f"it takes {format_quantity(pixels)} pixels per batch with {name}={low}, more than "
                f"the {format_quantity(self.pixels)} of the search"
            )
        value = min(value, high)
        reached = pixels + (value - first) * (more - pixels)
        if TOLERANCE * reached < self.pixels:
            raise SteradError(
                f"it takes only {format_quantity(reached)} pixels per batch with {name}={value}, "
                f"less than the {format_quantity(self.pixels)} of the search"
            )
        chosen = self._with_value(method, value)
        _narrow_learner(replace(self.config, method=chosen))  # refuses what excludes each other
        return chosen

    def _pixels_with(self, method: ComponentConfig, value: int) -> float:
        return step_pixels(replace(self.config, method=self._with_value(method, value)))

    def _with_value(self, method: ComponentConfig, value: int) -> ComponentConfig:
        fields = {**vars(method.fields), self.adapted.name: value}
        return ComponentConfig(method.name, build(type(method.fields), fields))


def step_pixels(config: RunConfig) -> float:
    """Return the pixels of a step with a full memory, in the second task, by a dry run.

    The network is narrow and the images are random; neither changes what is counted.
    """
    cls = config.learner_class
    if not issubclass(cls, Replay) or cls.trains != "on-stream":
        raise SteradError(
            f"{config.method.name} takes no steps with a memory on the stream, so that its pixels "
            "per batch cannot be chosen: search it in a space without equal-pixels"
        )
    learner, fields = _narrow_learner(config), config.method.fields
    asked = max(fields.memory_batch, getattr(fields, "candidates", 0))
    asked = max(asked, make_retrieval(fields).count_candidates(fields.memory_batch))
    size = size_of(config.dataset)
    classes = max(2, size.classes)
    first = _random_batch(size.shape, min(asked, config.settings.memory), classes // 2)
    learner.observe(first)
    learner.boundary(Boundary(task=0, step=1))
    before = _pixels(learner)
    batch_size = getattr(config.stream.fields, "batch_size", 10)
    learner.observe(_random_batch(size.shape, batch_size, classes))
    return _pixels(learner) - before


def _pixels(learner: Learner) -> float:
    cost = training_cost(learner)
    assert cost is not None
    return cost.pixels


def _narrow_learner(config: RunConfig) -> Learner:
    execution = Execution(threads=1, precision="float32", view_threads=1, compile=False)
    size, settings = size_of(config.dataset), config.settings
    if settings.weights is None:  # they have a width
        config = replace(config, settings=replace(settings, width=DRY_RUN_WIDTH))
    # A detected end of a task costs as much as an announced one.
    problem = config.problem(size.shape, execution, size.classes, announced=True)
    return config.build_learner(problem)


def _random_batch(shape: tuple[int, ...], images: int, classes: int) -> Batch:
    rng = torch.Generator().manual_seed(images)
    labels = torch.arange(images) % max(1, classes)
    return Batch(torch.rand(images, *shape, generator=rng), labels)
