"""Image files to pixels: decoded by Pillow in threads, grey to colour, any size to one."""

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

from sterad.data.area import area_resize
from sterad.errors import SteradError

ENDINGS = frozenset(
    [
        ".png",
        ".jpg",
        ".jpeg",
        ".bmp",
        ".gif",
        ".webp",
        ".ppm",
        ".pgm",
        ".pbm",
        ".pnm",
        ".tif",
        ".tiff",
    ]
)
MOST_PIXELS = 1 << 26
"""Pixels of one image: more is refused before it is decoded, as it may be a bomb."""
MOST_NAMED = 50
"""Files that do not decode and are named in one message."""
DEEP = frozenset({"I", "F", "I;16", "I;16B", "I;16L", "I;16N"})
"""Pillow's names for more than eight bits a channel, which it would clip."""


@dataclass(frozen=True)
class ImageFiles:
    """A list of files that `fetch` decodes by their positions."""

    what: str
    """Names the split in messages."""
    paths: Sequence[str]
    side: int
    """Height and width that every image must have unless another size is asked for."""
    channels: int = 3
    together: Sequence[str] = ()
    """Files of other splits: where one does not decode, all that do not are named at once."""

    def fetch(self, positions: npt.NDArray[np.int64], size: int | None) -> npt.NDArray[np.uint8]:
        """Decode the images at these positions: uint8 (n, c, h, h).

        With a size, the largest centred square of each is brought to it by averaging areas.
        """
        pillow = import_pillow()
        side = self.side if size is None else size
        images = np.empty((len(positions), self.channels, side, side), np.uint8)

        def decode(row: int) -> None:
            images[row] = self._one(pillow, int(positions[row]), size)

        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for _ in pool.map(decode, range(len(positions))):
                pass
        return images

    def _one(self, pillow: ModuleType, index: int, size: int | None) -> npt.NDArray[Any]:
        path = self.paths[index]
        try:
            pixels = _pixels(pillow, path, self.channels)
        except Exception as error:  # a damaged file can raise anything in a decoder
            raise undecodable(pillow, self.together or self.paths, self.channels) from error
        height, width = pixels.shape[1:]
        if size is None:
            if height != self.side or width != self.side:
                raise SteradError(
                    f"{self.what} image {index}, {path!r}, is {width}x{height} pixels where "
                    f"{self.side}x{self.side} are expected: give image_size to bring all to one"
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


def undecodable(pillow: ModuleType, paths: Sequence[str], channels: int) -> SteradError:
    """Return the error that names every file that does not decode."""

    def reason(path: str) -> str | None:
        try:
            _pixels(pillow, path, channels)
        except Exception as error:  # a damaged file can raise anything in a decoder
            return str(error) or type(error).__name__
        return None

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        reasons = list(pool.map(reason, paths))
    bad = [(path, why) for path, why in zip(paths, reasons, strict=True) if why is not None]
    named = "; ".join(f"{path!r} ({why})" for path, why in bad[:MOST_NAMED])
    more = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    return SteradError(
        f"{len(bad)} of {len(paths)} images do not decode: {named}{more}. "
        "Fetch them again, or remove them"
    )


def _pixels(pillow: ModuleType, path: str, channels: int) -> npt.NDArray[np.uint8]:
    with pillow.open(path) as image:
        if image.width * image.height > MOST_PIXELS:
            raise SteradError(f"it has {image.width}x{image.height} pixels, too many")
        if image.mode in DEEP:
            raise SteradError(f"it has more than 8 bits a channel, mode {image.mode}")
        if image.mode == "P" and "transparency" in image.info:
            image = image.convert("RGBA")
        decoded = np.asarray(image.convert("RGB" if channels == 3 else "L"))
    return decoded.transpose(2, 0, 1) if channels == 3 else decoded[None]


def import_pillow() -> ModuleType:
    """Return Pillow's Image module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise SteradError(
            "image files are decoded by Pillow, which is not installed: "
            "pip install 'sterad[images]'"
        ) from error
    return Image


def listed(folder: Path) -> list[str]:
    """Return the image files of a folder and of those below it, in natural order.

    a_2.png comes before a_10.png.
    """
    found: list[str] = []
    for home, below, names in os.walk(folder, followlinks=True):
        below.sort(key=natural)
        images = [n for n in names if os.path.splitext(n)[1].lower() in ENDINGS and n[0] != "."]
        found += [os.path.join(home, name) for name in sorted(images, key=natural)]
    return found


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which numbers inside names count as numbers.

    >>> sorted(["s10", "s2", "s1"], key=natural)
    ['s1', 's2', 's10']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]
