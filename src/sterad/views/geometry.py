"""Random crops: a part of each image blown up to the whole, or the image shifted over zeros."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sterad.devices import to_device
from sterad.views.flip import flip

ATTEMPTS = 10
WIDEST = 4 / 3  # width over height; the narrowest is its inverse


@dataclass(frozen=True)
class Boxes:
    """One box of whole pixels per image, each field (n,) int64."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


def draw_boxes(
    n: int, height: int, width: int, rng: torch.Generator, min_area: float = 0.2
) -> Boxes:
    """Draw n boxes: area uniform in [min_area, 1] of the image, log-uniform aspect in [3/4, 4/3].

    The first of ten attempts that fits is taken, else the largest centred box of a legal aspect.
    How many numbers are drawn depends on n alone; they are few, and with few numpy is faster than
    torch. A box may be the whole image: the strict inequality of the kornia that the released code
    used was a slip, mended since.
    """
    area = _uniform((n, ATTEMPTS), min_area, 1.0, rng) * (height * width)
    aspect = np.exp(_uniform((n, ATTEMPTS), -math.log(WIDEST), math.log(WIDEST), rng))
    corner = _uniform((n, 2), 0.0, 1.0, rng)
    tried = np.sqrt(np.stack([area / aspect, area * aspect], axis=2))
    largest = [min(height, width * WIDEST), min(width, height * WIDEST)]
    last = np.broadcast_to(np.array(largest, np.float32), (n, 1, 2))
    sizes = np.concatenate([tried, last], axis=1).round().astype(np.int64).clip(min=1)
    limit = np.array([height, width])
    first = (sizes <= limit).all(axis=2).argmax(axis=1)
    size = sizes[np.arange(n), first]
    room = limit - size
    # A float32 below 1 times (room + 1) can round up to room + 1.
    drawn = np.minimum((corner * (room + 1)).astype(np.int64), room)
    start = np.where((first == ATTEMPTS)[:, None], room // 2, drawn)
    return Boxes(*(torch.from_numpy(one) for one in (*start.T, *size.T)))


def resized_crop(x: Tensor, boxes: Boxes, mirror: Tensor | None = None) -> Tensor:
    """Blow each box up to the whole image, bilinear, corner pixels onto corner pixels.

    x: (n, c, h, w); mirror: (n,) bool, the images whose left becomes right. Interpolation is linear
    along each axis, so the crop is the product rows · image · columnsᵀ with one small matrix per
    image and axis. Rows come first: images whose channels lie last are multiplied as they lie.
    """
    n, c, h, w = x.shape
    bottom, left, right = boxes.top + boxes.height - 1, boxes.left, boxes.left + boxes.width - 1
    if mirror is not None:
        mirror = to_device(mirror, left.device)
        left, right = torch.where(mirror, right, left), torch.where(mirror, left, right)
    rows = interpolation(to_device(boxes.top, x.device), to_device(bottom, x.device), h, x.dtype)
    columns = interpolation(to_device(left, x.device), to_device(right, x.device), w, x.dtype)
    down = torch.bmm(rows, x.permute(0, 2, 3, 1).reshape(n, h, w * c)).view(n, h, w, c)
    across = down.permute(0, 3, 1, 2).reshape(n, c * h, w)
    return torch.bmm(across, columns.transpose(1, 2)).view(n, c, h, w)


def interpolation(first: Tensor, last: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Return the matrices (n, size, size) that stretch the pixels from `first` to `last` to `size`.

    Output i lies at first + i (last - first) / (size - 1); a pixel weighs 1 there, and less by its
    distance, down to 0 at the next one. Places are counted in parts of a pixel that are whole
    numbers, so that weights are right to the rounding of `dtype` anywhere in the image.
    """
    parts, pixels = max(size - 1, 1), torch.arange(size, dtype=dtype, device=first.device)
    place = torch.outer(first.to(dtype), parts - pixels).addr_(last.to(dtype), pixels)
    distance = (place[:, :, None] - parts * pixels).abs_()
    return distance.div_(-parts).add_(1).clamp_(min=0)


def draw_offsets(n: int, pad: int, rng: torch.Generator) -> Tensor:
    """Draw (n, 2) vertical and horizontal offsets, each uniform in 0 .. 2 pad, per sample."""
    return torch.randint(0, 2 * pad + 1, (n, 2), generator=rng, device=rng.device)


def padded_crop(x: Tensor, offsets: Tensor, pad: int) -> Tensor:
    """Put `pad` zeros around each image of x: (n, c, h, w), then cut h × w from its offset on.

    The released code shares one offset in a batch; here every image has its own.
    """
    n, _, h, w = x.shape
    windows = functional.pad(x, (pad, pad, pad, pad)).unfold(2, h, 1).unfold(3, w, 1)
    down, right = to_device(offsets, x.device).unbind(dim=1)
    return windows[torch.arange(n, device=x.device), :, down, right]


def mirrored_crop(x: Tensor, offsets: Tensor, pad: int, chosen: Tensor) -> Tensor:
    """Return `flip(padded_crop(x, offsets, pad), chosen)`, on a CPU in less than half of the time.

    There no border is made: numpy, whose slices cost a tenth of torch's, copies what stays of each
    image to where it comes to lie.
    """
    if x.device.type != "cpu" or x.dtype != torch.float32 or not x.is_contiguous():
        return flip(padded_crop(x, offsets, pad), chosen)
    out, moves = torch.zeros_like(x), _moves(pad, *x.shape[2:])
    drawn = zip(offsets.tolist(), chosen.tolist(), strict=True)
    for image, view, ((down, right), mirror) in zip(x.numpy(), out.numpy(), drawn, strict=True):
        to, kept = moves[down][right][mirror]
        view[to] = image[kept]
    return out


Slices = tuple[slice, slice, slice]


@cache
def _moves(pad: int, h: int, w: int) -> list[list[list[tuple[Slices, Slices]]]]:
    """Return where what stays of an image comes to lie, and what that is.

    By the offsets down and right, and by whether it is mirrored.
    """
    rows = [_kept(down, h, False) for down in range(-pad, pad + 1)]
    columns = [
        [_kept(right, w, mirror) for mirror in (False, True)] for right in range(-pad, pad + 1)
    ]
    every = slice(None)
    return [
        [
            [((every, to_row, to_column), (every, row, column)) for column, to_column in pair]
            for pair in columns
        ]
        for row, to_row in rows
    ]


def _kept(move: int, size: int, mirror: bool) -> tuple[slice, slice]:
    """Return which of `size` pixels in a row stay when they move, and where they come to lie.

    >>> _kept(2, 8, False), _kept(-2, 8, True)
    ((slice(2, 8, None), slice(0, 6, 1)), (slice(0, 6, None), slice(5, None, -1)))
    """
    places = range(size)[:: -1 if mirror else 1][max(-move, 0) : size - max(move, 0)]
    stop = places.stop if places.stop >= 0 else None  # -1 would mean the last
    return slice(max(move, 0), size - max(-move, 0)), slice(places.start, stop, places.step)


def _uniform(
    shape: tuple[int, ...], low: float, high: float, rng: torch.Generator
) -> npt.NDArray[np.float32]:
    drawn: npt.NDArray[np.float32] = (
        torch.rand(shape, generator=rng, device=rng.device).cpu().numpy()
    )
    return drawn * np.float32(high - low) + np.float32(low)
