"""What a run will cost: images pushed through the network, times seconds an image.

An image that is pushed forward and back counts as one, one that is only pushed forward as a third.
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
from sterad.experiments.pushed import FORWARD, images_per_step
from sterad.methods import METHODS
from sterad.results.record import RunRecord

NOMINAL = {20: 0.0045, 64: 0.026}
"""Seconds an image of 32x32 pixels by width of ResNet-18, on two cores of a server of 2021."""
LEAST = 0.0005
"""Seconds an image of the smallest networks: to start a layer costs more than its products."""


@dataclass(frozen=True)
class Estimate:
    """The cost of one run."""

    seconds: float
    basis: str
    """Where the figure comes from."""


@dataclass(frozen=True)
class Size:
    """What the cost depends on of a dataset."""

    train: float
    test: float
    shape: tuple[int, ...]


def estimate(config: RunConfig, records: Sequence[RunRecord]) -> Estimate:
    """Return the cost of a run from finished ones: of the same kind, of the same network, or none.

    >>> estimate(RunConfig.of(dataset="cifar100", method="er", memory=5000), []).basis
    '3.9e+05 images at 26.0 ms, nominal for two cores, scaled by multiplications'
    """
    mine = _unseeded(config.to_dict())
    twins = [one.seconds for one in records if _unseeded(one.config) == mine]
    if twins:
        return Estimate(statistics.median(twins), f"other seeds of it: {len(twins)} finished")
    size = size_of(config.dataset.fields, config.dataset.name)
    pushed = images(config, size, records)
    seconds, source = _seconds_per_image(config, size.shape, records)
    return Estimate(pushed * seconds, f"{pushed:.1e} images at {1000 * seconds:.1f} ms, {source}")


def _unseeded(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "seed"}


@cache
def size_of(dataset: Any, name: str) -> Size:
    """Return the size of a dataset, of the named ones without loading them."""
    if name not in SOURCES:
        loaded = dataset.load()
        return Size(len(loaded.train_labels), len(loaded.test_labels), loaded.input_shape)
    official = SOURCES[name]
    classes, train = dataset.selected_counts(*dataset.full_counts())
    each = dataset.test_per_class or official.test / official.classes
    side = dataset.image_size or official.image[1]
    return Size(train, classes * each, (official.image[0], side, side))


def images(config: RunConfig, size: Size, records: Sequence[RunRecord] = ()) -> float:
    """Return how many images a run pushes: in training, in consolidations and to be tested."""
    method, fields = METHODS[config.method.name], config.method.fields
    memory = config.settings.memory
    train = size.train * (1 - config.settings.validation)
    steps = math.ceil(train / getattr(config.stream.fields, "batch_size", 10))
    moments = [Fraction(1)] if method.final_only else _moments(config)
    kept = train if config.method.name == "joint" else memory
    trained = getattr(fields, "epochs", 0) * kept * len(moments)
    encoded = 0 if getattr(fields, "classifier", "head") == "head" else memory * len(moments)
    tested = size.test * float(sum(moments)) + encoded
    return steps * _each_step(config, records) + trained + FORWARD * tested


def _each_step(config: RunConfig, records: Sequence[RunRecord]) -> float:
    batch = getattr(config.stream.fields, "batch_size", 10)
    plain = config.method.to_dict()
    counted = [
        one.images_per_step
        for one in records
        if one.config["method"] == plain and one.config["stream"].get("batch_size") == batch
    ]
    return max(counted, default=0) or images_per_step(
        config.method.name, config.method.fields, batch
    )


def _moments(config: RunConfig) -> list[Fraction]:
    """Return the shares of the stream after which something is tested."""
    tasks = getattr(config.stream.fields, "tasks", None) if config.stream.name == "clear" else None
    parts = (config.settings.anytime, tasks or 1)
    return sorted({Fraction(k, part) for part in parts for k in range(1, part + 1)})


def _seconds_per_image(
    config: RunConfig, shape: tuple[int, ...], records: Sequence[RunRecord]
) -> tuple[float, str]:
    encoder, width = config.settings.encoder, config.settings.width or 64
    alike = [
        1 / one.images_per_second
        for one in records
        if (one.config["encoder"], one.config["width"]) == (encoder, width)
        and one.images_per_second > 0
        and _side(one.config["dataset"]) == shape[-1]
    ]
    if alike:
        return statistics.median(alike), f"the median of {len(alike)} runs of this network and size"
    near = min(NOMINAL, key=lambda known: abs(math.log(known / width)))
    ratio = multiplications(encoder, shape, width) / multiplications("resnet18", (3, 32, 32), near)
    return max(LEAST, NOMINAL[near] * ratio), "nominal for two cores, scaled by multiplications"


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
