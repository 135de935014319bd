"""Find image files and decode them with Pillow in threads, to one size and channel count."""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from sterad.data.arrays import area_resize
from sterad.errors import SteradError

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

    what: str
    """Name of the split in messages."""
    paths: Sequence[str]
    side: int
    """Height and width that every image must have unless `fetch` resizes it."""
    channels: int = 3
    together: Sequence[str] = ()
    """Files of all splits; an error message lists all damaged files among them."""

    def fetch(self, positions: npt.NDArray[np.int64], size: int | None) -> npt.NDArray[np.uint8]:
        """Decode the images at these positions: uint8 (n, c, h, h).

        With a size, crop each image to its largest center square and resize it.
        """
        pillow = import_pillow()
        side = self.side if size is None else size
        images = np.empty((len(positions), self.channels, side, side), np.uint8)

        def decode(row: int) -> None:
            images[row] = self._decode_one(pillow, int(positions[row]), size)

        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for _ in pool.map(decode, range(len(positions))):
                pass
        return images

    def _decode_one(self, pillow: ModuleType, index: int, size: int | None) -> npt.NDArray[Any]:
        path = self.paths[index]
        try:
            pixels = _read_pixels(pillow, path, self.channels)
        except Exception as error:  # a decoder can raise any exception on a damaged file
            raise decoding_error(pillow, self.together or self.paths, self.channels) from error
        height, width = pixels.shape[1:]
        if size is None:
            if height != self.side or width != self.side:
                raise SteradError(
                    f"{self.what} image {index}, {path!r}, has {width}x{height} pixels instead of "
                    f"{self.side}x{self.side}: give image_size to resize all images"
                )
            return pixels
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        square = pixels[None, :, top : top + side, left : left + side]
        try:
            resized: npt.NDArray[np.uint8] = area_resize(square, size)[0]
        except SteradError as error:
            raise SteradError(f"{self.what} image {index}, {path!r}: {error}") from error
        return resized


def decoding_error(pillow: ModuleType, paths: Sequence[str], channels: int) -> SteradError:
    """Return an error that lists all files that cannot be decoded."""

    def failure(path: str) -> str | None:
        try:
            _read_pixels(pillow, path, channels)
        except Exception as error:  # a decoder can raise any exception on a damaged file
            return str(error) or type(error).__name__
        return None

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        failures = list(pool.map(failure, paths))
    damaged = [(path, why) for path, why in zip(paths, failures, strict=True) if why is not None]
    listed = "; ".join(f"{path!r} ({why})" for path, why in damaged[:MAX_FILES_LISTED])
    more = (
        f"; and {len(damaged) - MAX_FILES_LISTED} more" if len(damaged) > MAX_FILES_LISTED else ""
    )
    return SteradError(
        f"{len(damaged)} of {len(paths)} images cannot be decoded: {listed}{more}. "
        "Replace or remove them"
    )


def _read_pixels(pillow: ModuleType, path: str, channels: int) -> npt.NDArray[np.uint8]:
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


def import_pillow() -> ModuleType:
    """Return the module PIL.Image; raise an error with the install command if it is missing."""
    try:
        from PIL import Image
    except ImportError as error:
        raise SteradError(
            "decoding image files needs Pillow, which is not installed: run "
            "pip install 'sterad[images]'"
        ) from error
    return Image


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
