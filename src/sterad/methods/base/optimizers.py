"""Optimizers by name, and a user's own factory of an optimizer with or without a scheduler."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from torch.nn import Parameter
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from sterad.engine.engine import MakeOptimizer, flatten_groups
from sterad.errors import SteradError
from sterad.validation import BelowOne, NonNegative, Positive

FUSED_DEVICES = ("cpu", "cuda")
# fmt: off
OptimizerName = Literal[
    "adam", "sgd", "adamw", "nadam", "radam", "adamax", "rmsprop", "adagrad", "adadelta",
]
# fmt: on


@dataclass(frozen=True)
class OptimizerConfig:
    """Optimizer and learning rate."""

    lr: Positive = 0.01
    """Learning rate."""
    optimizer: OptimizerName = "sgd"
    """Optimizer of torch.optim; most have their own usual learning rates."""
    momentum: BelowOne = 0.9
    """Momentum of SGD and RMSprop; that of the Adam family is always 0.9."""
    beta2: BelowOne = 0.999
    """Decay of the mean of squared gradients (Adam family, RMSprop, Adadelta), in [0, 1)."""
    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient; AdamW applies it to the weights."""
    clip: Positive | None = None
    """Maximum gradient norm (default: no limit)."""


_ADAM: dict[str, str | None] = {"momentum": None, "beta2": "betas"}
_OPTIMIZERS: dict[str, tuple[type[Optimizer], dict[str, str | None]]] = {
    "sgd": (torch.optim.SGD, {"momentum": "momentum", "beta2": None}),
    "adam": (torch.optim.Adam, _ADAM),
    "adamw": (torch.optim.AdamW, _ADAM),
    "nadam": (torch.optim.NAdam, _ADAM),
    "radam": (torch.optim.RAdam, _ADAM),
    "adamax": (torch.optim.Adamax, _ADAM),
    "rmsprop": (torch.optim.RMSprop, {"momentum": "momentum", "beta2": "alpha"}),
    "adagrad": (torch.optim.Adagrad, {"momentum": None, "beta2": None}),
    "adadelta": (torch.optim.Adadelta, {"momentum": None, "beta2": "rho"}),
}
"""Class of each optimizer, and its argument for the fields that not all of them have."""
_HAS_FUSED = ("sgd", "adam", "adamw")
_IGNORES_SILENTLY = ("sgd", "adam")
"""Optimizers that studies compare in one grid with values of fields that only one of them has."""


def make_optimizer(
    config: OptimizerConfig, parameters: Iterable[Any], scaled: bool = False
) -> Optimizer:
    """Return the optimizer that a config names.

    parameters: weights, or parameter groups with their own learning rates.
    scaled: whether the loss is scaled, so that steps with infinite gradients are skipped.
    """
    weights, name = list(parameters), config.optimizer
    cls, arguments = _OPTIMIZERS[name]
    options: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay}
    for field, argument in arguments.items():
        value = getattr(config, field)
        if argument is not None:
            options[argument] = (0.9, value) if argument == "betas" else value
        elif name not in _IGNORES_SILENTLY and value != _default_of(config, field):
            raise SteradError(
                f"{field}={value} has no effect on the optimizer {name}: leave it at "
                f"{_default_of(config, field)}, or choose another optimizer"
            )
    if name in _HAS_FUSED:
        # The fused kernel keeps its step count beside the weights and needs no synchronization. On
        # the CPU it does not skip steps with infinite scaled gradients (torch 2.13).
        on_device = all(one.device.type in FUSED_DEVICES for one in flatten_groups(weights))
        options["fused"] = not scaled and on_device
    return cls(weights, **options)


def _default_of(config: OptimizerConfig, name: str) -> Any:
    return next(field.default for field in fields(config) if field.name == name)


def wrap_factory(factory: Callable[..., Any]) -> MakeOptimizer:
    """Return what makes a checked optimizer by a user's factory.

    The factory takes the trainable weights, a list, and returns an optimizer, or an optimizer and a
    scheduler that is stepped after each step. One with two required arguments also gets whether the
    gradients are scaled.
    """
    if not callable(factory) or isinstance(factory, Optimizer):
        raise SteradError(
            f"the optimizer is {type(factory).__name__}: give a function of the parameters, such "
            "as `lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)`"
        )
    takes_scaled = _count_required(factory) > 1

    def make(weights: list[Parameter], scaled: bool) -> Optimizer:
        made = factory(weights, scaled) if takes_scaled else factory(weights)
        optimizer, scheduler = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        checked = _check_optimizer(optimizer, weights)
        if scheduler is not None:
            attach_scheduler(checked, scheduler)
        return checked

    return make


def _count_required(factory: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is one.empty for one in parameters)


def _check_optimizer(optimizer: Any, weights: list[Parameter]) -> Optimizer:
    """Return an optimizer; refuse one not of exactly these weights, or that needs a closure."""
    if not isinstance(optimizer, Optimizer):
        raise SteradError(
            f"the optimizer factory returned {type(optimizer).__name__}: return a torch optimizer, "
            "or a pair of an optimizer and a scheduler"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise SteradError(
            "LBFGS evaluates the loss several times in a step, which an online step does not "
            "allow: use another optimizer, such as AdamW"
        )
    held = [id(weight) for group in optimizer.param_groups for weight in group["params"]]
    if sorted(held) != sorted(map(id, trained := flatten_groups(weights))):
        raise SteradError(
            f"the optimizer holds {len(held)} weights and {len(trained)} are trained: give it each "
            "of the parameters that the factory receives, once, in one or several groups"
        )
    return optimizer


def attach_scheduler(optimizer: Optimizer, scheduler: Any) -> None:
    """Step a scheduler after each step of its optimizer, and keep it in the optimizer's state."""
    is_scheduler = isinstance(scheduler, LRScheduler) and scheduler.optimizer is optimizer
    if not is_scheduler or isinstance(scheduler, ReduceLROnPlateau):
        raise SteradError(
            f"the scheduler {type(scheduler).__name__} cannot be stepped after each optimizer "
            "step: return a torch.optim.lr_scheduler of the same optimizer that needs no metric"
        )

    def step(*_: Any) -> None:
        try:
            scheduler.step()
        except ValueError as error:
            raise SteradError(
                f"the scheduler {type(scheduler).__name__} fails with: {error}; it is stepped once "
                "for each optimizer step"
            ) from error

    def add_state(_: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        return state | {"scheduler": scheduler.state_dict()}

    def take_state(_: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        scheduler.load_state_dict(state["scheduler"])
        return {name: value for name, value in state.items() if name != "scheduler"}

    optimizer.register_step_post_hook(step)
    optimizer.register_state_dict_post_hook(add_state)
    optimizer.register_load_state_dict_pre_hook(take_state)
