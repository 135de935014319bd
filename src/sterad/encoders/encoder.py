"""What an encoder is, and the table of encoders by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from sterad.errors import SteradError
from sterad.registry import Registry

SMALLEST_SIDE = 8
Folds = tuple[tuple[str, str], ...]
"""Names of convolutions and of the normalizations after them; `shortcut.0` lies in `shortcut`."""


class Encoder(nn.Module, ABC):
    """A module from images (n, c, s, s), or vectors (n, d), to features (n, `features`).

    Layers that may be folded for evaluation are named in `folds`, see `engine.folding`.
    """

    features: int

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Return the features of x, not scaled."""


ENCODERS: Registry[Callable[[tuple[int, ...], int], Encoder]] = Registry(
    "encoder", "sterad.encoders"
)
"""Each is called with the shape of one input, (c, s, s) or (d,), and a width."""


def check_width(width: int) -> None:
    """Refuse a width below 1."""
    if width < 1:
        raise SteradError(
            f"an encoder of width {width} has no channels: choose 1 or more, 64 as published"
        )


def check_input(input_shape: tuple[int, ...]) -> None:
    """Refuse what is neither the shape of a square image nor of a vector."""
    if len(input_shape) not in (1, 3):
        raise SteradError(
            f"inputs of shape {input_shape} are neither images nor vectors: "
            "give (channels, side, side) or (d,)"
        )
    if min(input_shape) < 1:
        raise SteradError(
            f"inputs of shape {input_shape} hold nothing: every size must be positive"
        )
    if len(input_shape) == 3 and input_shape[1] != input_shape[2]:
        raise SteradError(
            f"images of {input_shape[1]} × {input_shape[2]} pixels are not square: "
            "crop or pad them to one side"
        )


def check_image(input_shape: tuple[int, ...]) -> None:
    """Refuse what is not the shape of a square image of 8 pixels or more a side."""
    check_input(input_shape)
    if len(input_shape) == 1:
        raise SteradError(
            f"a ResNet needs images, and inputs of shape {input_shape} are vectors: "
            "use the mlp encoder"
        )
    if input_shape[1] < SMALLEST_SIDE:
        raise SteradError(
            f"images of {input_shape[1]} pixels a side are too small for a ResNet: "
            f"enlarge them to {SMALLEST_SIDE} or more, or use the mlp encoder"
        )
