"""Recipe: how to build the learner of a classifier from the arguments of its constructor."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import nn

from sterad.encoders import EncoderOptions, resolve_encoder
from sterad.engine.engine import GradientGuard, RowGuard
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.methods.base.closed_form import ClosedForm
from sterad.methods.base.prediction_copy import start_rolling
from sterad.methods.base.rollback import replay_of
from sterad.plugins import object_digest
from sterad.threads import cores
from sterad.validation import BatchSize, MemorySize, Seed, Width, build, check_value, field_names

OnDivergence = Literal["raise", "skip"]
OBJECTS = ("method", "encoder", "memory", "retrieval", "optimizer", "augment", "classifier")
"""Arguments that may be objects in place of names; a saved classifier does not contain objects."""
FIELDS = {"retrieval": "retrieval", "optimizer": "optimizer", "classifier": "classifier"}
FIELDS |= {"augment": "augmentation"}
"""Fields of the method, and parts of the learner, that these arguments set."""
ENCODER_OPTIONS = tuple(field_names(EncoderOptions))
PLAIN_TYPES = (bool, int, float, complex, bytes, list, tuple, dict, set)
EXECUTION_OPTIONS = ("precision", "threads", "compile")
NOT_FIELDS = {"memory", "encoder", "method", "width", "flip", "seed", "device", "batch_size"}
NOT_FIELDS |= {"on_divergence", *FIELDS, *ENCODER_OPTIONS, *EXECUTION_OPTIONS}


@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything that the learner of a classifier is built from, checked."""

    params: dict[str, Any]
    """The arguments of the constructor, as they were given."""
    method: type[Learner]
    config: Any
    problem: Problem
    parts: dict[str, Any]
    """Objects of the user in place of those that names stand for."""

    @classmethod
    def of(cls, params: dict[str, Any], shape: tuple[int, ...]) -> "Recipe":
        """Check the arguments of a constructor, for inputs of this shape."""
        given = {name: params[name] for name in FIELDS if params[name] is not None}
        fields = {name: value for name, value in params.items() if name not in NOT_FIELDS}
        if "augment" in given and "augmentation" in fields:
            raise SteradError("augment and augmentation are the same: give one of them")
        named = {FIELDS[name]: one for name, one in given.items() if isinstance(one, str)}
        parts = {FIELDS[name]: one for name, one in given.items() if not isinstance(one, str)}
        parts |= {
            name: params[name] for name in ("encoder", "memory") if _is_object(name, params[name])
        }
        for name, part in parts.items():
            _check_object(name, part)
        method = _method_of(params["method"])
        config = build(method.Config, fields | named)
        problem = _problem_of(params, method, shape)
        check_call_options(params)
        return cls(dict(params), method, config, problem, parts)

    def build(self) -> Learner:
        """Return a new learner, which refuses steps that would destroy the network."""
        learner = build_learner(self.method, self.config, self.problem, **self.parts)
        if (replay := replay_of(learner)) is not None:
            replay.engine.guard = GradientGuard()
        if isinstance(inner := getattr(learner, "inner", learner), ClosedForm):
            inner.guard = RowGuard()
        start_rolling(learner)
        return learner

    @property
    def execution(self) -> Execution:
        """How the network is computed, with every open choice made."""
        return self.problem.execution

    def digests(self) -> dict[str, str]:
        """Return a hash of each argument that is an object."""
        values = {name: self.params[name] for name in OBJECTS}
        frozen = bool(self.params["frozen"])
        return {
            name: digest_of(value, frozen)
            for name, value in values.items()
            if _is_object(name, value)
        }


def digest_of(value: Any, frozen: bool) -> str:
    """Return a hash of an object; of a trained module only of its code and structure.

    The weights of a trained module are in the saved file.
    """
    if not isinstance(value, nn.Module) or frozen:
        return object_digest(value)
    kinds = sorted({type(one) for one in value.modules()}, key=str)
    shapes = {name: (str(one.dtype), tuple(one.shape)) for name, one in value.state_dict().items()}
    return object_digest([repr(value), kinds, shapes])


def check_call_options(params: dict[str, Any]) -> None:
    """Check the arguments that each call of `partial_fit` reads."""
    check_value("batch_size", params["batch_size"], BatchSize)
    check_value("on_divergence", params["on_divergence"], OnDivergence)


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Let torch use at most `count` threads, and restore the number at the end."""
    before = torch.get_num_threads()
    if count is None or count >= before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _is_object(name: str, value: Any) -> bool:
    if name == "memory":
        return hasattr(value, "update") and hasattr(value, "sample")
    return value is not None and not isinstance(value, str)


def _check_object(name: str, value: Any) -> None:
    """Refuse objects that cannot be the part that they are given for."""
    if name == "classifier":
        is_valid, rule = hasattr(value, "fit"), "a name, or a class with fit and scores"
    elif name in ("memory", "retrieval"):
        is_valid, rule = not isinstance(value, PLAIN_TYPES), "a name or an object"
    else:
        is_valid, rule = callable(value), "a name, or an object that can be called"
    if not is_valid:
        raise SteradError(f"{name} {value!r} is of type {type(value).__name__}: give {rule}")


def _method_of(method: Any) -> type[Learner]:
    if isinstance(method, type) and issubclass(method, Learner):
        return method
    return METHODS[METHODS.resolve(method)]


def _problem_of(params: dict[str, Any], method: type[Learner], shape: tuple[int, ...]) -> Problem:
    memory, encoder = params["memory"], params["encoder"]
    options = {name: params[name] for name in ENCODER_OPTIONS}
    values = {
        "input_shape": shape,
        "classes": None,
        "memory": check_value("memory", getattr(memory, "capacity", memory), MemorySize),
        "flip": check_value("flip", params["flip"], bool),
        "encoder": _encoder_name(encoder, method, shape),
        "width": check_value("width", params["width"], Width),
        "seed": check_value("seed", params["seed"], Seed),
        "encoder_options": build(EncoderOptions, options),
    }
    return Problem(**values, execution=_execution_of(params, shape, values["width"]))


def _encoder_name(encoder: Any, method: type[Learner], shape: tuple[int, ...]) -> str:
    """Return the name of the encoder: of the method's, with an MLP in place of a ResNet."""
    if isinstance(encoder, str):
        return resolve_encoder(encoder)[0]
    default = method.default_encoder
    return "mlp" if default == "resnet18" and len(shape) != 3 else default


def _execution_of(params: dict[str, Any], shape: tuple[int, ...], width: int) -> Execution:
    given = {name: params[name] for name in EXECUTION_OPTIONS if params[name] is not None}
    execution = Execution.from_options(device=params["device"], **given)
    if execution.device == "cpu" and execution.threads is None:
        # As many parallel passes as torch has threads; their number does not change the bits.
        threads = min(torch.get_num_threads(), cores())
        execution = replace(execution, view_threads=threads)
    return execution.resolve(shape, width)
