"""Additions: losses and gradients that any replay method can switch on by its fields.

An addition is one file with a frozen dataclass of its fields, whose defaults switch it off, and a
subclass of `Addition`. `Replay.observe` adds its loss to that of the method, and calls it after
the gradients are computed and after each step.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from sterad.errors import SteradError
from sterad.streams import Batch
from sterad.validation import field_names

if TYPE_CHECKING:
    from sterad.encoders import Network
    from sterad.methods.base.replay import Replay


def join(retrieved: Batch, batch: Batch) -> Batch:
    """Return both batches as one, where the retrieved one is: some methods retrieve to the device.

    >>> import torch
    >>> join(Batch(torch.ones(1, 2), torch.ones(1)), Batch(torch.zeros(1, 2), torch.zeros(1))).y
    tensor([1., 0.])
    """
    batch = batch.to(retrieved.x.device) if len(retrieved) else batch
    return Batch.concatenate(retrieved, batch)


class Addition:
    """Something that is added to the training of a replay method; override what it needs."""

    Config: ClassVar[type[Any]]
    """The dataclass of its fields, a base of `ReplayConfig`."""
    switch: ClassVar[str]
    """The field that switches it on when it differs from its default; also its key in a state."""
    switch_value: ClassVar[str]
    """How to switch it on, for messages: `teacher=ema`."""

    def __init__(self, learner: "Replay") -> None:
        """Refuse combinations that exclude each other; the network exists already."""

    @classmethod
    def extend_network(cls, learner: "Replay", network: "Network") -> None:
        """Add what is trained with the network, before it has an optimizer."""

    @classmethod
    def is_on(cls, config: Any) -> bool:
        """Return whether a config switches it on."""
        return bool(getattr(config, cls.switch) != getattr(cls.Config(), cls.switch))

    @classmethod
    def check_fields(cls, config: Any) -> None:
        """Refuse fields that have no effect because the addition is off."""
        if cls.is_on(config):
            return
        default = cls.Config()
        for name in field_names(cls.Config):
            if (value := getattr(config, name)) != getattr(default, name):
                raise SteradError(
                    f"{name}={value} has no effect without {cls.switch}: set {cls.switch_value}"
                )

    @classmethod
    def cost(cls, config: Any, images: int) -> float:
        """Return the cost of a step on so many images, which are counted without views."""
        return 0.0

    def before_loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> None:
        """Prepare for the loss of the method on these batches, which is computed next."""

    def loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> Tensor | None:
        """Return the loss that is added to the method's, or None."""
        return None

    def add_gradients(self, learner: "Replay") -> None:
        """Add to the gradients of the losses before the step."""

    def after_step(self, learner: "Replay") -> None:
        """Update the addition's own state after a step."""

    def widen(self, learner: "Replay") -> None:
        """Follow a head that has grown."""

    def state_dict(self) -> dict[str, Any]:
        """Return the addition's own state; empty if it has none."""
        return {}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state fits this addition."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""


def add_losses(learner: "Replay", loss: Tensor, retrieved: Batch, batch: Batch) -> Tensor:
    """Return the loss of a method and those of its additions that are not part of it already."""
    for addition in learner.additions:
        if type(addition) in learner.own_additions:
            continue
        if (added := addition.loss(learner, retrieved, batch)) is not None:
            loss = loss + added
    return loss
