"""Fields and parts of a replay method that exclude each other."""

from typing import TYPE_CHECKING

import torch

from sterad.encoders.inputs import InputTransform
from sterad.errors import SteradError
from sterad.memory import RandomRetrieval, SlotMemory
from sterad.methods.base.parts import ADDITIONS, Parts, ReplayConfig

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay


def check_compatible(method: "type[Replay]", config: ReplayConfig, parts: Parts) -> None:
    """Raise if a field or a part has no effect, or not the expected one, beside the others."""
    for addition in ADDITIONS:
        addition.check_fields(config)
    if config.head_width is not None and config.head != "mlp":
        raise SteradError(
            f"head_width={config.head_width} has no effect on head={config.head}: use head=mlp"
        )
    if config.review and not (isinstance(parts.memory, SlotMemory) and parts.memory.capacity):
        raise SteradError(
            "review=true trains on all images of the memory, and this one has none to read: use "
            "memory_policy=reservoir, for example"
        )
    if parts.classifier is not None and not parts.memory.capacity:
        raise SteradError(
            f"the classifier {config.classifier!r} is fitted to the memory, which keeps "
            f"nothing here: use {method.head_classifier!r}, or a memory"
        )
    if not (method.trains_without_memory or parts.memory.capacity):
        raise SteradError(
            f"{method.__name__} takes no step without a memory, and this one stores "
            "nothing: use memory_policy=reservoir, for example"
        )
    is_random = isinstance(parts.retrieval, RandomRetrieval)
    if not is_random and not (method.replays and parts.memory.capacity):
        raise SteradError(
            f"{method.__name__} replays nothing with the stream batches here, so that "
            f"{type(parts.retrieval).__name__} has no effect: leave retrieval=random"
        )


def check_views(learner: "Replay") -> None:
    """Raise if views without the raw image, or of another size, are not what they promise."""
    config, shape = learner.config, learner.problem.input_shape
    given = {"raw_view": config.raw_view, "view_size": config.view_size}
    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        return
    name, value = next(iter(chosen.items()))
    if not learner.chooses_views:
        raise SteradError(
            f"{name}={value} has no effect on {type(learner).__name__}, which pairs images and "
            "views in one pass: leave it unset"
        )
    if not learner.augmentation.changes(torch.zeros(1, *shape)) or config.augmentation == "none":
        raise SteradError(
            f"{name}={value} has no effect without random views, and inputs of shape {shape} have "
            f"none with augmentation {config.augmentation!r}: leave {name} unset"
        )
    if config.views == 0:
        raise SteradError(f"{name}={value} is for random views, and views=0: give views=1")
    if config.view_size is not None:
        _check_view_size(learner, config.view_size)


def _check_view_size(learner: "Replay", side: int) -> None:
    """Raise unless the encoder gives views of this side the features of an image."""
    shape, encoder = learner.problem.input_shape, learner.network.encoder
    if len(shape) != 3 or side >= min(shape[1:]):
        raise SteradError(
            f"view_size={side} reduces images of more than {side} x {side} pixels, and the inputs "
            f"have shape {shape}: give a smaller side, or leave it unset"
        )
    for layer in encoder.modules():
        if isinstance(layer, InputTransform) and layer.size is not None:
            raise SteradError(
                f"view_size={side} has no effect, because the encoder resizes its inputs to "
                f"{layer.size}: leave it unset"
            )
    view = torch.zeros(1, shape[0], side, side)
    try:
        found = learner.engine.evaluate(lambda network, x: network.features(x), view).shape[1]
    except (RuntimeError, ValueError, IndexError) as error:
        raise _misfit(side, f"it fails on them ({str(error).splitlines()[0]})") from error
    if found != encoder.features:
        raise _misfit(side, f"it gives them {found} features and images {encoder.features}")


def _misfit(side: int, reason: str) -> SteradError:
    return SteradError(
        f"the encoder does not take views of {side} x {side} pixels: {reason}; give another "
        "view_size, or use an encoder such as resnet18"
    )
