"""Find image files and decode them with Pillow in threads, to one size and channel count."""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

from sterad.data.arrays import Array, ByteArray, IntArray, area_resize
from sterad.errors import SteradError
from sterad.optional_imports import require_extra

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
    | {".ppm", ".pgm", ".pbm", ".pnm"}
)
MAX_PIXELS = 1 << 26
"""Pixels of one image; a larger image is rejected before decoding (decompression bomb)."""
MAX_FILES_LISTED = 50
"""Number of damaged files listed in one message."""
DEEP_MODES = frozenset({"I", "F", "I;16", "I;16B", "I;16L", "I;16N"})
"""Pillow modes with more than 8 bits per channel; their conversion would clip values."""


@dataclass(frozen=True)
class ImageFiles:
    """A list of image files that `fetch` decodes by position."""

    paths: Sequence[str]
    side: int
    """Height and width that every image must have, if there is no `size`."""
    size: int | None
    """Height and width to which the largest center square of each image is resized."""
    channels: int = 3

    def fetch(self, positions: IntArray) -> ByteArray:
        """Decode the images at these positions: uint8 (n, c, h, h)."""
        pillow = require_extra("PIL.Image", "images")
        paths = [self.paths[position] for position in positions]
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            return np.stack(list(pool.map(partial(self._decode_one, pillow), paths)))

    def _decode_one(self, pillow: ModuleType, path: str) -> Array:
        try:
            pixels = _read_pixels(pillow, path, self.channels)
        except Exception as error:  # a decoder can raise any exception on a damaged file
            raise decoding_error(pillow, self.paths, self.channels) from error
        height, width = pixels.shape[1:]
        if self.size is None and (height, width) != (self.side, self.side):
            raise SteradError(
                f"the image {path!r} has {width}x{height} pixels instead of "
                f"{self.side}x{self.side}: give image_size to resize all images"
            )
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        square = pixels[None, :, top : top + side, left : left + side]
        try:
            resized: ByteArray = area_resize(square, self.size)[0]
        except SteradError as error:
            raise SteradError(f"the image {path!r}: {error}") from error
        return resized


def decoding_error(pillow: ModuleType, paths: Sequence[str], channels: int) -> SteradError:
    """Return an error that lists all files that cannot be decoded."""

    def failure(path: str) -> str | None:
        try:
            _read_pixels(pillow, path, channels)
        except Exception as error:  # a decoder can raise any exception on a damaged file
            return f"{path!r} ({str(error) or type(error).__name__})"
        return None

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        damaged = [text for text in pool.map(failure, paths) if text is not None]
    listed = damaged[:MAX_FILES_LISTED]
    if len(damaged) > MAX_FILES_LISTED:
        listed.append(f"and {len(damaged) - MAX_FILES_LISTED} more")
    return SteradError(
        f"{len(damaged)} of {len(paths)} images cannot be decoded: {'; '.join(listed)}. "
        "Replace or remove them"
    )


def _read_pixels(pillow: ModuleType, path: str, channels: int) -> ByteArray:
    with pillow.open(path) as image:
        if image.width * image.height > MAX_PIXELS:
            raise SteradError(
                f"it has {image.width}x{image.height} pixels, more than {MAX_PIXELS:,}"
            )
        if image.mode in DEEP_MODES:
            raise SteradError(f"it has more than 8 bits per channel, mode {image.mode}")
        if image.mode == "P" and "transparency" in image.info:
            image = image.convert("RGBA")
        decoded = np.asarray(image.convert("RGB" if channels == 3 else "L"))
    return decoded.transpose(2, 0, 1) if channels == 3 else decoded[None]


def list_class_images(
    folders: Sequence[Path], remedy: str | None = None
) -> tuple[list[str], IntArray]:
    """Return the images of all folders, and for each image the index of its folder.

    With a remedy, which an error message gives, every folder must have an image.
    """
    images = [list_images(folder) for folder in folders]
    for folder, found in zip(folders, images, strict=True):
        if not found and remedy:
            raise SteradError(f"there is no image in {str(folder)!r}: {remedy}")
    index = np.repeat(np.arange(len(folders)), [len(found) for found in images])
    return [path for found in images for path in found], index


def list_images(folder: Path) -> list[str]:
    """Return the image files in a folder and its sub-folders in natural order.

    For example, a_2.png precedes a_10.png.
    """
    found: list[str] = []
    for home, folders, names in os.walk(folder, followlinks=True):
        folders.sort(key=natural_key)
        images = [n for n in names if os.path.splitext(n)[1].lower() in SUFFIXES and n[0] != "."]
        found += [os.path.join(home, name) for name in sorted(images, key=natural_key)]
    return found


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that compares the numbers in names by value.

    >>> sorted(["s10", "s2", "s1"], key=natural_key)
    ['s1', 's2', 's10']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]
