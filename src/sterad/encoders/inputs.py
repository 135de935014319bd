"""InputTransform: the size and normalization of inputs that an encoder was trained with."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from sterad.encoders.options import EncoderOptions
from sterad.errors import SteradError


class InputFormat(NamedTuple):
    """What an encoder expects; empty or None: inputs as they are."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    size: tuple[int, int] | None = None
    """Height and width in pixels."""

    def override(self, options: EncoderOptions) -> "InputFormat":
        """Return the format with the values that the options give."""
        side = options.input_size
        mean, std = options.input_mean or self.mean, options.input_std or self.std
        count = max(len(mean), len(std))
        return InputFormat(
            mean or (0.0,) * count, std or (1.0,) * count, (side, side) if side else self.size
        )

    def shape_for(self, input_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of one transformed input; refuse a format that does not fit."""
        channels, *size = input_shape
        if not size and self.size is not None:
            raise SteradError(
                f"input_size resizes images, and inputs of shape {input_shape} are vectors: "
                "leave it out"
            )
        count = len(self.mean)
        if len(self.std) != count or (count and count != channels and not (size and channels == 1)):
            raise SteradError(
                f"input_mean and input_std have {count} and {len(self.std)} values, and inputs of "
                f"shape {input_shape} have {channels} channels: give one value per channel"
            )
        return (count or channels, *(self.size or size)) if size else input_shape


class InputTransform(nn.Module):
    """Repeats a single channel, resizes and normalizes inputs in [0, 1]."""

    mean: Tensor
    std: Tensor

    def __init__(self, format_: InputFormat, input_shape: tuple[int, ...]) -> None:
        """Take inputs of one shape: (c, h, w) or (d,)."""
        super().__init__()
        self.output_shape = format_.shape_for(input_shape)
        self.size = format_.size if self.output_shape[1:] != input_shape[1:] else None
        ones = (1,) * (len(input_shape) - 1)
        self.register_buffer("mean", torch.tensor(format_.mean).view(-1, *ones))
        self.register_buffer("std", torch.tensor(format_.std).view(-1, *ones))

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, *output_shape) for x: (n, c, h, w) or (n, d)."""
        if x.shape[1] != self.output_shape[0]:  # gray images for an encoder of color images
            x = x.expand(-1, self.output_shape[0], -1, -1)
        if self.size is not None:
            x = interpolate(x, self.size, mode="bilinear", antialias=True)
        return (x - self.mean) / self.std if len(self.mean) else x
