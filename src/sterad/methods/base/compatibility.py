"""Fields and parts of a replay method that exclude each other."""

from typing import TYPE_CHECKING

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
