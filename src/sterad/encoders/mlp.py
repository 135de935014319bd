"""Encoders for feature vectors and very small images: `mlp` and `flatten`."""

import math

from torch import Tensor, nn

from sterad.encoders.encoder import ENCODERS, Encoder, check_arguments


@ENCODERS.register("mlp")
class MLP(Encoder):
    """Two linear layers of 8 × width outputs, each followed by ReLU."""

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        """Take vectors, `input_shape` = (d,), or images of any size, (c, h, w)."""
        super().__init__()
        check_arguments(input_shape, width)
        self.features = 8 * width
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(input_shape), self.features),
            nn.ReLU(),
            nn.Linear(self.features, self.features),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, d) or (n, c, h, w)."""
        features: Tensor = self.layers(x)
        return features

    def stage_outputs(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of both linear layers after their ReLU."""
        first: Tensor = self.layers[:3](x)
        return first, self.layers[3:](first)


@ENCODERS.register("flatten")
class Flatten(Encoder):
    """No encoder: the flattened inputs are the features; the width has no effect."""

    def __init__(self, input_shape: tuple[int, ...], width: int) -> None:
        """Take vectors, `input_shape` = (d,), or images of any size, (c, h, w)."""
        super().__init__()
        check_arguments(input_shape, width)
        self.features = math.prod(input_shape)

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, d) or (n, c, h, w)."""
        return x.flatten(1)
