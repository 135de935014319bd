"""Crops, flips and rotations: resized crops, crops of the padded image, OCM's 16 variants, halves.

Random parts of a batch are drawn and changed by `draw_chosen` and `choose`.
"""

import math
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sterad.devices import to_device

CROP_ATTEMPTS = 10
MAX_ASPECT = 4 / 3
"""Width over height; the minimum is the inverse."""
FOLD = 16
"""Number of variants of each image in `sixteenfold`."""
QUARTER_TURNS = (0, 2, 1, 3)
"""Counterclockwise quarter turns of the whole image, in the order of the blocks."""


def draw_chosen(n: int, probability: float, rng: torch.Generator) -> Tensor:
    """Choose each of n samples with `probability`: (n,) bool."""
    return torch.rand(n, generator=rng, device=rng.device) < probability


def choose(x: Tensor, changed: Tensor, chosen: Tensor) -> Tensor:
    """Return `changed` for the chosen samples of x: (n, c, h, w), and x for the others.

    Interpolation with a weight of 0 or 1 is exact, and on a CPU three times as fast as
    `torch.where`.
    """
    return torch.lerp(x, changed.expand_as(x), per_image(chosen, x))


def per_image(values: Tensor, x: Tensor) -> Tensor:
    """Reshape one value per image, (n,), so that it broadcasts over x: (n, c, h, w)."""
    return to_device(values.to(x.dtype), x.device).view(-1, 1, 1, 1)


def draw_boxes(
    n: int, height: int, width: int, rng: torch.Generator, min_area: float = 0.2
) -> Tensor:
    """Draw n crop boxes as rows top, left, height, width in pixels: (4, n) int64.

    Areas are uniform in [min_area, 1] of the image, aspects log-uniform in [3/4, 4/3].
    The first of ten attempts that fits is used, else the largest centered box of a valid aspect.
    The number of random draws depends on n alone. numpy is faster than torch on arrays this small.
    A box may be the whole image; the kornia version of the released code excluded it by a strict
    inequality, a bug that kornia has fixed since.
    """
    area = _uniform((n, CROP_ATTEMPTS), min_area, 1.0, rng) * (height * width)
    aspect = np.exp(_uniform((n, CROP_ATTEMPTS), -math.log(MAX_ASPECT), math.log(MAX_ASPECT), rng))
    corner = _uniform((n, 2), 0.0, 1.0, rng)
    tried = np.sqrt(np.stack([area / aspect, area * aspect], axis=2))
    largest = [min(height, width * MAX_ASPECT), min(width, height * MAX_ASPECT)]
    last = np.broadcast_to(np.array(largest, np.float32), (n, 1, 2))
    sizes = np.concatenate([tried, last], axis=1).round().astype(np.int64).clip(min=1)
    limit = np.array([height, width])
    first = (sizes <= limit).all(axis=2).argmax(axis=1)
    size = sizes[np.arange(n), first]
    free = limit - size
    # A float32 below 1 times (free + 1) can round up to free + 1.
    drawn = np.minimum((corner * (free + 1)).astype(np.int64), free)
    start = np.where((first == CROP_ATTEMPTS)[:, None], free // 2, drawn)
    return torch.from_numpy(np.concatenate([start.T, size.T]))


def resized_crop(x: Tensor, boxes: Tensor, mirror: Tensor | None = None) -> Tensor:
    """Resize each box to the whole image, bilinearly, with aligned corners.

    x: (n, c, h, w); mirror: (n,) bool, the images to flip left to right. Interpolation is linear
    along each axis, so the crop is the product rows · image · columnsᵀ with one small matrix per
    image and axis. Rows are multiplied first: this needs no copy of channels-last images.
    """
    n, c, h, w = x.shape
    top, left, height, width = to_device(boxes, x.device)
    right = left + width - 1
    if mirror is not None:
        mirror = to_device(mirror, x.device)
        left, right = torch.where(mirror, right, left), torch.where(mirror, left, right)
    rows = interpolation(top, top + height - 1, h, x.dtype)
    columns = interpolation(left, right, w, x.dtype)
    down = torch.bmm(rows, x.permute(0, 2, 3, 1).reshape(n, h, w * c)).view(n, h, w, c)
    across = down.permute(0, 3, 1, 2).reshape(n, c * h, w)
    return torch.bmm(across, columns.transpose(1, 2)).view(n, c, h, w)


def interpolation(first: Tensor, last: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Return matrices (n, size, size) that resize the pixels from `first` to `last` to `size`.

    Output i is at first + i (last - first) / (size - 1). The weight of a pixel is 1 minus its
    distance from there, and at least 0. Positions are integers in units of 1 / (size - 1) pixels,
    so that weights are exact up to the rounding of `dtype` anywhere in the image.
    """
    parts, pixels = max(size - 1, 1), torch.arange(size, dtype=dtype, device=first.device)
    place = torch.outer(first.to(dtype), parts - pixels).addr_(last.to(dtype), pixels)
    distance = (place[:, :, None] - parts * pixels).abs_()
    return distance.div_(-parts).add_(1).clamp_(min=0)


def draw_offsets(n: int, pad: int, rng: torch.Generator) -> Tensor:
    """Draw a vertical and a horizontal offset per image, uniform in 0 .. 2 pad: (n, 2)."""
    return torch.randint(0, 2 * pad + 1, (n, 2), generator=rng, device=rng.device)


def padded_crop(x: Tensor, offsets: Tensor, pad: int) -> Tensor:
    """Pad each image of x: (n, c, h, w) with `pad` zeros, then crop h × w pixels at its offset.

    The released code uses one offset per batch; here every image has its own.
    """
    n, _, h, w = x.shape
    windows = functional.pad(x, (pad, pad, pad, pad)).unfold(2, h, 1).unfold(3, w, 1)
    down, right = to_device(offsets, x.device).unbind(dim=1)
    return windows[torch.arange(n, device=x.device), :, down, right]


def mirrored_crop(x: Tensor, offsets: Tensor, pad: int, chosen: Tensor) -> Tensor:
    """Return `padded_crop(x, offsets, pad)` with the chosen images mirrored left to right.

    On a CPU the image is not padded: numpy, whose slices cost a tenth of torch's, copies the
    visible part of each image to its new position, in less than half the time.
    """
    if x.device.type != "cpu" or x.dtype != torch.float32 or not x.is_contiguous():
        crop = padded_crop(x, offsets, pad)
        return choose(crop, crop.flip(-1), chosen)
    out, slices = torch.zeros_like(x), _crop_slices(pad, *x.shape[2:])
    drawn = zip(offsets.tolist(), chosen.tolist(), strict=True)
    for image, view, ((down, right), mirror) in zip(x.numpy(), out.numpy(), drawn, strict=True):
        target, source = slices[down][right][mirror]
        view[target] = image[source]
    return out


Slices = tuple[slice, slice, slice]


@cache
def _crop_slices(pad: int, h: int, w: int) -> list[list[list[tuple[Slices, Slices]]]]:
    """Return (target, source) slices of the visible part of an image.

    Indexed by the vertical offset, the horizontal offset and whether the image is mirrored; lists
    are faster here than a dictionary.
    """

    def visible_part(down: int, right: int, mirror: bool) -> tuple[Slices, Slices]:
        row, to_row = _axis_slices(down, h, False)
        column, to_column = _axis_slices(right, w, mirror)
        return (slice(None), to_row, to_column), (slice(None), row, column)

    moves, mirrors = range(-pad, pad + 1), (False, True)
    return [[[visible_part(a, b, m) for m in mirrors] for b in moves] for a in moves]


def _axis_slices(move: int, size: int, mirror: bool) -> tuple[slice, slice]:
    """Return the source and the target slice of the visible pixels along one axis.

    >>> _axis_slices(2, 8, False), _axis_slices(-2, 8, True)
    ((slice(2, 8, None), slice(0, 6, 1)), (slice(0, 6, None), slice(5, None, -1)))
    """
    places = range(size)[:: -1 if mirror else 1][max(-move, 0) : size - max(move, 0)]
    stop = places.stop if places.stop >= 0 else None  # -1 would mean the last pixel
    return slice(max(move, 0), size - max(-move, 0)), slice(places.start, stop, places.step)


def sixteenfold(x: Tensor) -> Tensor:
    """Return 16 variants of each image of x: (n, c, h, w) as (16 n, c, h, w), in blocks of n.

    The augmentation of OCM. Block 4 g + j holds inner variant j, rotated as a whole by the g-th of
    0°, 180°, 90°, 270°. The inner variants are the image itself, and the image with its left half,
    both halves, or its right half rotated by 180° in place. A rectangle that is rotated by 90° or
    270° is resized to its old height and width.

    >>> sixteenfold(torch.tensor([[[[1, 2], [3, 4]]]]))[:8].flatten(1)[[0, 1, 2, 3, 4]]
    tensor([[1, 2, 3, 4],
            [3, 2, 1, 4],
            [3, 4, 1, 2],
            [1, 4, 3, 2],
            [4, 3, 2, 1]])
    """
    left, right = x.tensor_split(2, dim=3)
    turned_left, turned_right = left.flip(2, 3), right.flip(2, 3)
    halves = (
        (left, right),
        (turned_left, right),
        (turned_left, turned_right),
        (left, turned_right),
    )
    inner = torch.cat([torch.cat(pair, dim=3) for pair in halves])
    turned = [inner.rot90(quarters, (2, 3)) for quarters in QUARTER_TURNS]
    if x.shape[2] != x.shape[3]:
        size = tuple(x.shape[2:])
        turned[2:] = [functional.interpolate(one, size, mode="bilinear") for one in turned[2:]]
    return torch.cat(turned)


def mirrored_halves(x: Tensor, dim: int = 3) -> Tensor:
    """Return x: (n, c, h, w) with each half of every image mirrored in place.

    dim 3: the left and the right half, each left to right; dim 2: the upper and the lower half,
    each top to bottom. An odd side has the larger half first. No half moves to the other's place.

    >>> mirrored_halves(torch.tensor([[[[1, 2, 3, 4], [5, 6, 7, 8]]]])).tolist()
    [[[[2, 1, 4, 3], [6, 5, 8, 7]]]]
    """
    return torch.cat([half.flip(dim) for half in x.tensor_split(2, dim=dim)], dim=dim)


def _uniform(
    shape: tuple[int, ...], low: float, high: float, rng: torch.Generator
) -> npt.NDArray[np.float32]:
    drawn: npt.NDArray[np.float32] = (
        torch.rand(shape, generator=rng, device=rng.device).cpu().numpy()
    )
    return drawn * np.float32(high - low) + np.float32(low)
