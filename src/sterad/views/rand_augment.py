"""Random operations of equal strength: several on each image, drawn from fourteen.

Ekin D. Cubuk, Barret Zoph, Jonathon Shlens, Quoc V. Le: RandAugment: Practical automated data
augmentation with a reduced search space. NeurIPS 2020, https://arxiv.org/abs/1909.13719

Each image has operations of its own; the images of one operation are changed together. Shapes are
interpolated bilinearly and filled with black.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional

from sterad.devices import to_device
from sterad.validation import Range, Views, check_fields
from sterad.views import color
from sterad.views.augmentations import Augmentation
from sterad.views.geometry import per_image

MAX_MAGNITUDE = 30
MAX_SHEAR, MAX_TURN, MAX_FACTOR = 0.3, math.radians(30), 0.9
MAX_SHIFT = 150 / 331
"""Largest shift as a fraction of the side."""
LEVELS = 256
DROPPED_BITS = 4
"""Bits that the strongest posterization drops of eight."""
Magnitude = Annotated[int, Range(0, MAX_MAGNITUDE)]


@dataclass(frozen=True)
class RandAugment(Augmentation):
    """Random operations on colors and shapes of each image, one after the other."""

    operations: Views = 3
    """Number of operations on each image."""
    magnitude: Magnitude = 15
    """Strength of all operations, from 0 to 30."""

    def __post_init__(self) -> None:
        check_fields(self)

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return one view of the images x: (n, c, h, w)."""
        size = self.operations, len(x)
        drawn = torch.randint(len(OPERATIONS), size, generator=rng, device=rng.device).cpu()
        signs = 2 * torch.randint(2, size, generator=rng, device=rng.device).cpu() - 1
        amounts = signs * (self.magnitude / MAX_MAGNITUDE)
        return apply(x, drawn, amounts)


def apply(x: Tensor, drawn: Tensor, amounts: Tensor) -> Tensor:
    """Return images after the drawn operations with signed strengths in [-1, 1].

    drawn, amounts: (operations, n) on the CPU, so that the images of an operation are found without
    a synchronization with the device of x: (n, c, h, w).
    """
    x = x.clone()
    for indices, strengths in zip(drawn, amounts, strict=True):
        for index, operation in enumerate(OPERATIONS):
            chosen = (indices == index).nonzero().squeeze(1)
            if operation is not identity and len(chosen):
                rows = to_device(chosen, x.device)
                x[rows] = operation(x[rows], to_device(strengths[chosen].to(x.dtype), x.device))
    return x


def identity(x: Tensor, amount: Tensor) -> Tensor:
    """Return the images."""
    return x


def autocontrast(x: Tensor, amount: Tensor) -> Tensor:
    """Stretch each channel to [0, 1]; constant channels stay."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    spread = high - low
    return torch.where(spread > 0, (x - low) / spread.clamp(min=1 / LEVELS**2), x).clamp_(0, 1)


def equalize(x: Tensor, amount: Tensor) -> Tensor:
    """Give the 256 levels of each channel about equal frequencies, as PIL does."""
    levels = (x * (LEVELS - 1)).round().long().flatten(0, 1).flatten(1)
    counts = levels.new_zeros(len(levels), LEVELS)
    counts.scatter_add_(1, levels, torch.ones_like(levels))
    highest = counts.gather(1, levels.amax(1, keepdim=True))
    step = (levels.shape[1] - highest) // (LEVELS - 1)
    before = counts.cumsum(1) - counts
    table = ((before + step // 2) // step.clamp(min=1)).clamp_(max=LEVELS - 1)
    table = torch.where(step > 0, table, torch.arange(LEVELS, device=x.device))
    return (table.gather(1, levels).to(x.dtype) / (LEVELS - 1)).view_as(x)


def posterize(x: Tensor, amount: Tensor) -> Tensor:
    """Drop up to four of the eight bits of each value."""
    step = per_image((amount.abs() * DROPPED_BITS).round().exp2(), x)
    levels = (x * (LEVELS - 1)).round()
    return (levels / step).floor_() * step / (LEVELS - 1)


def solarize(x: Tensor, amount: Tensor) -> Tensor:
    """Invert the values above a threshold, which falls from 1 to 0."""
    return torch.where(x < 1 - per_image(amount.abs(), x), x, 1 - x)


def sharpness(x: Tensor, amount: Tensor) -> Tensor:
    """Blend with a smoothed image, whose border is not smoothed."""
    factor, channels = 1 + MAX_FACTOR * per_image(amount, x), x.shape[1]
    kernel = torch.ones(3, 3, dtype=x.dtype, device=x.device)
    kernel[1, 1] = 5
    weight = (kernel / 13).expand(channels, 1, 3, 3)
    smooth = x.clone()
    smooth[:, :, 1:-1, 1:-1] = functional.conv2d(x, weight, groups=channels)
    return torch.lerp(smooth, x, factor.expand_as(x)).clamp_(0, 1)


def brightness(x: Tensor, amount: Tensor) -> Tensor:
    """Multiply by a factor."""
    return color.brightness(x, 1 + MAX_FACTOR * amount)


def contrast(x: Tensor, amount: Tensor) -> Tensor:
    """Blend with the mean gray value."""
    return color.contrast(x, 1 + MAX_FACTOR * amount)


def saturation(x: Tensor, amount: Tensor) -> Tensor:
    """Blend with the gray image."""
    return color.saturation(x, 1 + MAX_FACTOR * amount)


def rotate(x: Tensor, amount: Tensor) -> Tensor:
    """Rotate around the center."""
    cos, sin = (MAX_TURN * amount).cos(), (MAX_TURN * amount).sin()
    zero, aspect = torch.zeros_like(amount), x.shape[2] / x.shape[3]
    return _affine(x, (cos, -sin * aspect, zero), (sin / aspect, cos, zero))


def shear_x(x: Tensor, amount: Tensor) -> Tensor:
    """Move rows to the side in proportion to their distance from the center."""
    one, zero, aspect = torch.ones_like(amount), torch.zeros_like(amount), x.shape[2] / x.shape[3]
    return _affine(x, (one, MAX_SHEAR * amount * aspect, zero), (zero, one, zero))


def shear_y(x: Tensor, amount: Tensor) -> Tensor:
    """Move columns up or down in proportion to their distance from the center."""
    one, zero, aspect = torch.ones_like(amount), torch.zeros_like(amount), x.shape[2] / x.shape[3]
    return _affine(x, (one, zero, zero), (MAX_SHEAR * amount / aspect, one, zero))


def shift_x(x: Tensor, amount: Tensor) -> Tensor:
    """Move the image to the side."""
    one, zero = torch.ones_like(amount), torch.zeros_like(amount)
    return _affine(x, (one, zero, 2 * MAX_SHIFT * amount), (zero, one, zero))


def shift_y(x: Tensor, amount: Tensor) -> Tensor:
    """Move the image up or down."""
    one, zero = torch.ones_like(amount), torch.zeros_like(amount)
    return _affine(x, (one, zero, zero), (zero, one, 2 * MAX_SHIFT * amount))


Row = tuple[Tensor, Tensor, Tensor]


def _affine(x: Tensor, first: Row, second: Row) -> Tensor:
    """Sample images at A (column, row, 1), in coordinates from -1 to 1; rows of A: (n,) each."""
    matrix = torch.stack([torch.stack(first, 1), torch.stack(second, 1)], 1)
    grid = functional.affine_grid(matrix, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, "bilinear", "zeros", align_corners=False)


OPERATIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    *(identity, autocontrast, equalize, rotate, solarize, saturation, posterize, contrast),
    *(brightness, sharpness, shear_x, shear_y, shift_x, shift_y),
)
"""Each takes images (n, c, h, w) in [0, 1] and signed strengths (n,) in [-1, 1]."""
