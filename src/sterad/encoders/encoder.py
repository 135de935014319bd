"""The base class of encoders, their registry, and checks of their arguments."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from sterad.errors import SteradError
from sterad.registry import Registry

MIN_IMAGE_SIZE = 8
"""Smallest side of an image for a ResNet, in pixels."""
Folds = tuple[tuple[str, str], ...]
"""Pairs of the names of a convolution and of the normalization after it, as in `get_submodule`."""


class Encoder(nn.Module, ABC):
    """A module from images (n, c, h, w) or vectors (n, d) to features (n, `features`).

    `folds` names layers that can be merged for evaluation: see `engine.batchnorm_folding`.
    """

    features: int
    lr: float | None = None
    """Learning rate of the weights; None: that of the head."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Return the features of x, not normalized."""

    def stage_outputs(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of all stages from the first to the last, which are the features."""
        raise no_stages(type(self).__name__)


def no_stages(name: str) -> SteradError:
    """Return the error for an encoder without stages."""
    return SteradError(
        f"the encoder {name} has no stages: use resnet18, or give it a method stage_outputs(x) "
        "that returns the outputs of its stages, and last its features"
    )


ENCODERS: Registry[Callable[[tuple[int, ...], int], Encoder]] = Registry(
    "encoder", "sterad.encoders"
)
"""Functions of the shape of one input, (c, h, w) or (d,), and a width."""


def check_arguments(input_shape: tuple[int, ...], width: int) -> None:
    """Raise if the shape is not that of an image or a vector, or if the width is below 1."""
    if len(input_shape) not in (1, 3):
        raise SteradError(
            f"inputs of shape {input_shape} are neither images nor vectors: "
            "give (channels, height, width) or (d,)"
        )
    if min(input_shape) < 1:
        raise SteradError(f"inputs of shape {input_shape} are empty: every size must be positive")
    if width < 1:
        raise SteradError(
            f"an encoder of width {width} has no channels: give at least 1 (64 in the paper)"
        )


def check_image_arguments(input_shape: tuple[int, ...], width: int) -> None:
    """Raise as `check_arguments` does, or if an input is not an image of 8 × 8 pixels or more."""
    check_arguments(input_shape, width)
    if len(input_shape) == 1:
        raise SteradError(
            f"a ResNet needs images, and inputs of shape {input_shape} are vectors: "
            "use the mlp encoder"
        )
    if min(input_shape[1:]) < MIN_IMAGE_SIZE:
        raise SteradError(
            f"images of {input_shape[1]} × {input_shape[2]} pixels are too small for a ResNet: "
            f"enlarge them to {MIN_IMAGE_SIZE} × {MIN_IMAGE_SIZE} or more, or use the mlp encoder"
        )
