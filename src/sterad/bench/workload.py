"""Workload: which images one act of a method pushes through networks, and where it steps.

Listened to from outside, by hooks on every encoder and optimizer, so that no method has to say it
and none can say less than it does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from sterad.encoders import Encoder


@dataclass(frozen=True)
class Pass:
    """One pass of some images through a network."""

    images: int
    learning: bool
    """Whether it is walked back, too."""


@dataclass(frozen=True)
class Workload:
    """The passes between the steps of an optimizer, step after step."""

    steps: tuple[tuple[Pass, ...], ...]

    @property
    def learning_images(self) -> int:
        """Images that go forward and back."""
        return sum(one.images for step in self.steps for one in step if one.learning)

    @property
    def looking_images(self) -> int:
        """Images that only go forward."""
        return sum(one.images for step in self.steps for one in step if not one.learning)


def workload_of(act: Callable[[], object]) -> Workload:
    """Do `act` once and return what it pushed through encoders."""
    steps: list[list[Pass]] = [[]]
    lock = Lock()

    def note_pass(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        if isinstance(module, Encoder):
            with lock:  # views may go side by side
                steps[-1].append(Pass(len(inputs[0]), torch.is_grad_enabled()))

    def note_step(*_: object) -> None:
        steps.append([])

    hooks = (
        register_module_forward_pre_hook(note_pass),
        register_optimizer_step_post_hook(note_step),
    )
    try:
        act()
    finally:
        for hook in hooks:
            hook.remove()
    return Workload(tuple(tuple(step) for step in steps if step))
