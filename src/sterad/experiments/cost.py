"""Estimated cost of a run: images through the network, times seconds per image.

An image that is passed forward and backward counts as one, one that is only passed forward as 1/3.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from sterad.data.sources import SOURCES
from sterad.encoders import make_encoder
from sterad.experiments.config import ComponentConfig, RunConfig
from sterad.methods.base.learner import FORWARD_COST
from sterad.methods.base.replay import Replay
from sterad.results.record import RunRecord

NOMINAL_SECONDS = {20: 0.0045, 64: 0.026}
"""Seconds per image of 32x32 pixels by width of ResNet-18, on two cores of a server of 2021."""
MIN_SECONDS = 0.0005
"""Seconds per image of the smallest networks, which is the overhead of their layers."""


class Size(NamedTuple):
    """Numbers of images of a dataset, and the shape of one."""

    train: float
    test: float
    shape: tuple[int, ...]
    classes: int


def estimate(config: RunConfig, records: Sequence[RunRecord]) -> tuple[float, str]:
    """Return the seconds of a run and their basis: finished runs like it, or of its network.

    >>> estimate(RunConfig.of(dataset="cifar100", method="er", memory=5000), [])[1]
    '390,000 images at 26.0 ms, nominal for two cores, scaled by multiplications'
    """
    values = config.to_dict() | {"seed": None}
    same = [r.seconds for r in records if dict(r.config) | {"seed": None} == values]
    if same:
        return statistics.median(same), f"other seeds of it: {len(same)} finished"
    size = size_of(config.dataset)
    count = images(config, size, records)
    seconds, source = _seconds_per_image(config, size.shape, records)
    rounded = float(f"{count:.2g}")  # an estimate has no more digits
    return count * seconds, f"{rounded:,.0f} images at {1000 * seconds:.1f} ms, {source}"


@cache
def size_of(dataset: ComponentConfig) -> Size:
    """Return the size of a dataset, without loading it if its source is known."""
    fields = dataset.fields
    if dataset.name not in SOURCES:
        loaded = fields.load()
        return Size(
            len(loaded.train_labels), len(loaded.test_labels), loaded.input_shape, loaded.classes
        )
    official = SOURCES[dataset.name]
    classes, train = fields.selected_counts(*fields.full_counts())
    each = fields.test_per_class or official.test / official.classes
    size = fields.target_size or official.image[1:]
    return Size(train, classes * each, (official.image[0], *size), classes)


def images(config: RunConfig, size: Size, records: Sequence[RunRecord] = ()) -> float:
    """Return the images of a run: in training, in consolidations and in tests."""
    method, settings, stream = config.learner_class, config.settings, config.stream
    train = size.train * (1 - settings.validation)
    batch_size = getattr(stream.fields, "batch_size", 10)
    cost = method.cost(config.method.fields, batch_size, settings.memory, train)
    saved = _saved_by_small_views(config, size, batch_size)
    fields = config.method.to_dict()
    recorded = [
        record.images_per_step
        for record in records
        if record.config["method"] == fields
        and record.config["stream"].get("batch_size") == batch_size
    ]
    per_step = max(recorded, default=0) or cost.step - saved
    moments = {Fraction(1)}  # fractions of the stream after which there is an evaluation
    if method.trains != "at-end":
        tasks = getattr(stream.fields, "tasks", None) if stream.name == "clear" else None
        for parts in (settings.anytime, tasks or 1):
            moments |= {Fraction(k, parts) for k in range(1, parts + 1)}
    tested = FORWARD_COST * size.test * float(sum(moments))
    return math.ceil(train / batch_size) * per_step + len(moments) * cost.consolidation + tested


def _saved_by_small_views(config: RunConfig, size: Size, batch_size: int) -> float:
    """Return how many images' worth of pixels a step saves by views of a lower resolution."""
    fields, method = config.method.fields, config.learner_class
    side = getattr(fields, "view_size", None)
    if side is None or not issubclass(method, Replay):
        return 0.0
    share = side**2 / math.prod(size.shape[1:])
    random_views, raw = method.count_views(fields)
    step: float = (
        method.step_cost(fields, batch_size, fields.memory_batch) * fields.memory_iterations
    )
    saved: float = step * random_views / (random_views + raw) * (1 - share)
    return saved


def _seconds_per_image(
    config: RunConfig, shape: tuple[int, ...], records: Sequence[RunRecord]
) -> tuple[float, str]:
    encoder, width = config.settings.encoder, config.settings.width or 64
    measured = [
        1 / record.images_per_second
        for record in records
        if (record.config["encoder"], record.config["width"]) == (encoder, width)
        and record.images_per_second > 0
        and _image_size(record.config["dataset"]) == shape[1:]
    ]
    if measured:
        source = f"the median of {len(measured)} runs of this network and size"
        return statistics.median(measured), source
    near = min(NOMINAL_SECONDS, key=lambda known: abs(math.log(known / width)))
    ratio = multiplications(encoder, shape, width) / multiplications("resnet18", (3, 32, 32), near)
    seconds = max(MIN_SECONDS, NOMINAL_SECONDS[near] * ratio)
    return seconds, "nominal for two cores, scaled by multiplications"


def _image_size(dataset: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return height and width of the images of a recorded run, if they are known."""
    name, height = dataset["name"], dataset.get("image_size")
    if height:
        return height, dataset.get("image_width") or height
    return SOURCES[name].image[1:] if name in SOURCES else {"digits": (8, 8)}.get(name)


@cache
def multiplications(encoder: str, shape: tuple[int, ...], width: int) -> int:
    """Count the multiplications of an encoder for one input.

    >>> round(multiplications("resnet18", (3, 32, 32), 64) / 1e6)
    555
    """
    with torch.random.fork_rng([]), torch.no_grad():
        module = make_encoder(encoder, shape, width).eval()
        with FlopCounterMode(display=False) as counter:
            module(torch.zeros(1, *shape))
    return int(counter.get_total_flops()) // 2
