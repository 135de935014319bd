"""A plain two-layer encoder for feature vectors and very small images."""

import math

from torch import Tensor, nn

from sterad.encoders.encoder import ENCODERS, Encoder, check_input, check_width


@ENCODERS.register("mlp")
class MLP(Encoder):
    """Flatten, then two linear layers of 8 width outputs, each with ReLU."""

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        """Take vectors of `input_shape` = (d,) or images of (c, s, s), of any side."""
        super().__init__()
        check_input(input_shape)
        check_width(width)
        self.features = 8 * width
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(input_shape), self.features),
            nn.ReLU(),
            nn.Linear(self.features, self.features),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, d) or (n, c, s, s)."""
        features: Tensor = self.layers(x)
        return features
