"""Copies of learners that predict as of now, while the original learns in another thread."""

from copy import copy, deepcopy
from typing import Any, TypeVar

from torch import nn

from sterad.classifiers import NearestMean
from sterad.engine import Engine
from sterad.memory import SlotMemory
from sterad.methods.base.encoded_memory import RollingFeatures
from sterad.methods.base.learner import Learner
from sterad.methods.base.replay import Replay
from sterad.methods.base.rollback import replay_of

M = TypeVar("M", bound=nn.Module)
REFRESHED_IMAGES = 256
"""Images of the memory that are encoded again for each learned batch. On CIFAR-10 class means are
then within one point of the accuracy of exact ones; 64 images lose up to two points."""


def prediction_copy(learner: Learner) -> Learner:
    """Return a learner whose predictions do not change when `learner` learns.

    A copy of a replay method shares the memory and the weights that are not trained; it can
    predict, but not learn. A wrapper of a learner, such as a frozen encoder, is shared.
    """
    inner = getattr(learner, "inner", learner)
    new = _copied_replay(inner) if isinstance(inner, Replay) else inner.fork()
    if inner is learner:
        return new
    outer: Any = copy(learner)
    outer.inner = new
    return outer  # type: ignore[no-any-return]


def start_rolling(learner: Learner) -> None:
    """Refresh the features of the memory along the feed, if predictions use them."""
    replay = replay_of(learner)
    if replay is None or replay.trains != "on-stream" or not _uses_features(replay):
        return
    if isinstance(replay.memory, SlotMemory):
        replay.encoded_memory.rolling = RollingFeatures(replay.memory)


def refresh(learner: Learner, batches: int | None = None) -> None:
    """Refresh features of the memory after so many batches, if `start_rolling` did its work.

    Without a number of batches all features are refreshed.
    """
    replay = replay_of(learner)
    cache = None if replay is None else replay.encoded_memory.rolling
    if replay is not None and cache is not None:
        if batches is None:
            cache.refresh_all(replay.engine, replay.predictor)
        else:
            cache.refresh(replay.engine, replay.predictor, batches * REFRESHED_IMAGES)


def reads_memory(learner: Learner) -> bool:
    """Return whether `consolidate` of a prediction copy reads the memory, which is shared."""
    replay = replay_of(learner)
    if replay is None:
        return False
    is_known = type(replay).consolidate.__module__.startswith("sterad.")
    has_features = replay.encoded_memory.rolling is not None or not _uses_features(replay)
    return not (is_known and replay.trains == "on-stream" and has_features)


def _uses_features(replay: Replay) -> bool:
    retrains_head = bool(getattr(replay.config, "retrain_head", False))
    return replay.parts.classifier is not None or retrains_head


def _copied_replay(replay: Replay) -> Replay:
    new = copy(replay)
    modules = {name: one for name, one in vars(replay).items() if isinstance(one, nn.Module)}
    vars(new).update({name: copy_module(one) for name, one in modules.items()})
    new.engine = _copied_engine(replay.engine)
    if replay.teacher is not None:
        new.teacher = copy(replay.teacher)
        new.teacher.network = copy_module(replay.teacher.network, shares_frozen=False)
    new.fitted = None
    new.encoded_memory = encoded = copy(replay.encoded_memory)
    if (cache := encoded.rolling) is not None:
        if replay.parts.classifier is NearestMean:
            new.fitted = cache.nearest_mean(replay.engine.device)
        else:  # other classifiers are fitted to all features when they are needed
            encoded.rolling = copy(cache)
            encoded.rolling.features = cache.features.clone()
            encoded.rolling.tables = {name: one.clone() for name, one in cache.tables.items()}
    return new


def _copied_engine(engine: Engine) -> Engine:
    """Return an engine that evaluates a copy of the network; threads are shared."""
    new = copy(engine)
    new.network = copy_module(engine.network)
    new._buffers, new._evaluations = {}, 0
    return new


def copy_module(module: M, shares_frozen: bool = True, memo: dict[int, Any] | None = None) -> M:
    """Return a copy of a module and all parts, of `deepcopy`'s content in a tenth of its time.

    shares_frozen: share weights that need no gradient, because no step changes them.
    """
    if memo is None:
        frozen = [one for one in module.parameters() if shares_frozen and not one.requires_grad]
        memo = {id(one): one for one in frozen}
    if id(module) in memo:
        return memo[id(module)]  # type: ignore[no-any-return]
    if not _is_plain(module):
        return deepcopy(module, memo)
    new = memo[id(module)] = copy(module)
    new._parameters = {name: deepcopy(one, memo) for name, one in module._parameters.items()}
    new._buffers = {name: deepcopy(one, memo) for name, one in module._buffers.items()}
    new._modules = {
        name: None if one is None else copy_module(one, memo=memo)
        for name, one in module._modules.items()
    }
    return new


def _is_plain(module: nn.Module) -> bool:
    """Return whether all state of a layer is in its weights, buffers and parts."""
    is_known = type(module).__module__.startswith(("sterad.", "torch.nn.modules."))
    return is_known and not isinstance(module, nn.RNNBase)
