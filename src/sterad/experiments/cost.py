"""Estimated cost of a run: images through the network, times seconds per image.

An image that is passed forward and backward counts as one, one that is only passed forward as 1/3.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from sterad.data.sources import SOURCES
from sterad.encoders import ENCODERS
from sterad.experiments.config import RunConfig
from sterad.methods import METHODS
from sterad.methods.base.learner import FORWARD_COST
from sterad.results.record import RunRecord

NOMINAL_SECONDS = {20: 0.0045, 64: 0.026}
"""Seconds per image of 32x32 pixels by width of ResNet-18, on two cores of a server of 2021."""
MIN_SECONDS = 0.0005
"""Seconds per image of the smallest networks, which is the overhead of their layers."""


@dataclass(frozen=True)
class Estimate:
    """The cost of one run."""

    seconds: float
    basis: str
    """Source of the figure."""


@dataclass(frozen=True)
class Size:
    """The size of a dataset."""

    train: float
    test: float
    shape: tuple[int, ...]


def estimate(config: RunConfig, records: Sequence[RunRecord]) -> Estimate:
    """Return the cost of a run from finished runs of the same kind, or of the same network.

    >>> estimate(RunConfig.of(dataset="cifar100", method="er", memory=5000), []).basis
    '3.9e+05 images at 26.0 ms, nominal for two cores, scaled by multiplications'
    """
    values = _without_seed(config.to_dict())
    same = [record.seconds for record in records if _without_seed(record.config) == values]
    if same:
        return Estimate(statistics.median(same), f"other seeds of it: {len(same)} finished")
    size = size_of(config.dataset.fields, config.dataset.name)
    count = images(config, size, records)
    seconds, source = _seconds_per_image(config, size.shape, records)
    return Estimate(count * seconds, f"{count:.1e} images at {1000 * seconds:.1f} ms, {source}")


def _without_seed(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "seed"}


@cache
def size_of(dataset: Any, name: str) -> Size:
    """Return the size of a dataset, without loading it if its source is known."""
    if name not in SOURCES:
        loaded = dataset.load()
        return Size(len(loaded.train_labels), len(loaded.test_labels), loaded.input_shape)
    official = SOURCES[name]
    classes, train = dataset.selected_counts(*dataset.full_counts())
    each = dataset.test_per_class or official.test / official.classes
    side = dataset.image_size or official.image[1]
    return Size(train, classes * each, (official.image[0], side, side))


def images(config: RunConfig, size: Size, records: Sequence[RunRecord] = ()) -> float:
    """Return the images of a run: in training, in consolidations and in tests."""
    method, settings = METHODS[config.method.name], config.settings
    train = size.train * (1 - settings.validation)
    batch_size = getattr(config.stream.fields, "batch_size", 10)
    cost = method.cost(config.method.fields, batch_size, settings.memory, train)
    moments = [Fraction(1)] if method.final_only else _moments(config)
    tested = FORWARD_COST * size.test * float(sum(moments))
    per_step = _recorded_images_per_step(config, batch_size, records) or cost.step
    return math.ceil(train / batch_size) * per_step + len(moments) * cost.consolidation + tested


def _recorded_images_per_step(
    config: RunConfig, batch_size: int, records: Sequence[RunRecord]
) -> float:
    method = config.method.to_dict()
    recorded = [
        record.images_per_step
        for record in records
        if record.config["method"] == method
        and record.config["stream"].get("batch_size") == batch_size
    ]
    return max(recorded, default=0)


def _moments(config: RunConfig) -> list[Fraction]:
    """Return the fractions of the stream after which there is an evaluation."""
    tasks = getattr(config.stream.fields, "tasks", None) if config.stream.name == "clear" else None
    parts = (config.settings.anytime, tasks or 1)
    return sorted({Fraction(k, part) for part in parts for k in range(1, part + 1)})


def _seconds_per_image(
    config: RunConfig, shape: tuple[int, ...], records: Sequence[RunRecord]
) -> tuple[float, str]:
    encoder, width = config.settings.encoder, config.settings.width or 64
    measured = [
        1 / record.images_per_second
        for record in records
        if (record.config["encoder"], record.config["width"]) == (encoder, width)
        and record.images_per_second > 0
        and _side(record.config["dataset"]) == shape[-1]
    ]
    if measured:
        source = f"the median of {len(measured)} runs of this network and size"
        return statistics.median(measured), source
    near = min(NOMINAL_SECONDS, key=lambda known: abs(math.log(known / width)))
    ratio = multiplications(encoder, shape, width) / multiplications("resnet18", (3, 32, 32), near)
    return max(
        MIN_SECONDS, NOMINAL_SECONDS[near] * ratio
    ), "nominal for two cores, scaled by multiplications"


def _side(dataset: Mapping[str, Any]) -> int | None:
    native = SOURCES[dataset["name"]].image[1] if dataset["name"] in SOURCES else None
    side: int | None = dataset.get("image_size") or native
    return 8 if side is None and dataset["name"] == "digits" else side


@cache
def multiplications(encoder: str, shape: tuple[int, ...], width: int) -> int:
    """Count the multiplications of an encoder for one input.

    >>> round(multiplications("resnet18", (3, 32, 32), 64) / 1e6)
    555
    """
    counts: list[int] = []

    def count(layer: nn.Module, _: Any, out: Tensor) -> None:
        weight = layer.get_parameter("weight")
        counts.append(out.numel() * weight[0].numel())

    with torch.random.fork_rng([]), torch.inference_mode():
        network = ENCODERS[encoder](shape, width).eval()
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.register_forward_hook(count)
        network(torch.zeros(1, *shape))
    return sum(counts)
