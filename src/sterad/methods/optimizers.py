"""Optimizers by name, with the fields that every method shares."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn import Parameter

from sterad.errors import SteradError
from sterad.validation import BelowOne, NonNegative, Positive

FUSED = ("cpu", "cuda")


@dataclass(frozen=True)
class OptimizerConfig:
    """How gradients become steps."""

    lr: Positive = 0.01
    """Learning rate."""
    optimizer: Literal["adam", "sgd"] = "sgd"
    """Optimizer."""
    momentum: BelowOne = 0.9
    """Momentum of SGD; that of Adam is always 0.9."""
    beta2: BelowOne = 0.999
    """Adam's beta2, the decay rate of its mean of squared gradients, in [0, 1)."""
    weight_decay: NonNegative = 0.0
    """L2 penalty added to the gradient."""
    clip: Positive | None = None
    """Maximum norm of the gradient (default: no clipping)."""


def make_optimizer(
    config: OptimizerConfig, parameters: Iterable[Parameter], scaled: bool = False
) -> torch.optim.Optimizer:
    """Return the optimizer that a config names.

    scaled: whether gradients are those of a scaled loss, of which some steps must be left out.
    """
    weights = list(parameters)
    # One kernel that keeps its counts beside the weights; elsewhere each step asks for numbers. On
    # a processor it does not leave out the steps whose scaled gradients were infinite (torch 2.13).
    fused = not scaled and all(weight.device.type in FUSED for weight in weights)
    if config.optimizer == "adam":
        betas = (0.9, config.beta2)
        return torch.optim.Adam(
            weights, lr=config.lr, betas=betas, weight_decay=config.weight_decay, fused=fused
        )
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            weights,
            lr=config.lr,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
            fused=fused,
        )
    raise SteradError(f"unknown optimizer {config.optimizer!r}: known are adam, sgd")
