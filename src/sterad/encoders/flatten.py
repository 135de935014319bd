"""No encoder: the pixels are the features, and a linear head on them is a linear classifier."""

import math

from torch import Tensor

from sterad.encoders.encoder import ENCODERS, Encoder, check_input, check_width


@ENCODERS.register("flatten")
class Flatten(Encoder):
    """The inputs themselves in one row each; the width does not matter."""

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        """Take vectors of `input_shape` = (d,) or images of (c, s, s), of any side."""
        super().__init__()
        check_input(input_shape)
        check_width(width)
        self.features = math.prod(input_shape)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, d) or (n, c, s, s)."""
        return x.flatten(1)
