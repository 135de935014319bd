"""Find image files and decode them with Pillow in threads, to one size and channel count.

Transparent pixels are blended with a background, 16 bits per channel are scaled to 8, and the
orientation in the EXIF data is applied.
"""

import hashlib
import io
import os
import re
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from sterad.data.arrays import Array, ByteArray, IntArray, area_resize
from sterad.errors import SteradError
from sterad.files import reading
from sterad.optional_imports import require_extra

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
    | {".ppm", ".pgm", ".pbm", ".pnm"}
)
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Formats that Pillow may decode, whatever the name of a file; others can start programs."""
MAX_PIXELS = 1 << 26
"""Pixels of one image; a larger image is rejected before decoding (decompression bomb)."""
MAX_FILE_BYTES = 1 << 28
"""Bytes of one image file, as many as MAX_PIXELS have at most."""
MAX_FILES_LISTED = 50
"""Number of damaged files listed in one message."""
DEEP_MODES = frozenset({"I", "F"})
"""Pillow modes with 32 bits per channel, whose largest value is not known."""
DEEP_FORMATS = ("PNG", "PPM")
"""Formats with 16 bits per channel at most, which Pillow may open in the mode I."""
ALPHA_MODES = frozenset({"RGBA", "LA", "PA", "RGBa", "La"})
"""Pillow modes with an alpha channel."""
SHADES = {"white": 255, "black": 0}
"""Value of each background."""
ORIENTATION_TAG = 0x0112
"""EXIF tag of the position of the camera."""
TURNS = {
    2: (0, True),
    3: (2, False),
    4: (2, True),
    5: (3, True),
    6: (3, False),
    7: (1, True),
    8: (1, False),
}
"""EXIF orientation to counterclockwise quarter turns, and whether to mirror the result."""
Fit = Literal["crop", "stretch", "pad"]
Background = Literal["white", "black"]


@dataclass(frozen=True)
class ImageFiles:
    """A list of image files that `fetch` decodes by position."""

    paths: Sequence[str]
    native: tuple[int, int]
    """Height and width that every image must have, if there is no `size`."""
    size: tuple[int, int] | None
    """Height and width to which each image is resized."""
    channels: int = 3
    fit: Fit = "crop"
    """What to do with another ratio of height and width: crop the center, stretch, or pad."""
    background: Background = "white"
    """Color behind transparent pixels and around padded images."""
    size_from: str = ""
    """File whose size is `native`; empty if the dataset declares the size."""

    def fetch(self, positions: IntArray) -> ByteArray:
        """Decode the images at these positions: uint8 (n, c, h, w)."""
        pillow = require_extra("PIL.Image", "images")
        paths = [self.paths[position] for position in positions]
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            return np.stack(list(pool.map(partial(self._decode_one, pillow), paths)))

    def _decode_one(self, pillow: ModuleType, path: str) -> Array:
        try:
            pixels = read_pixels(pillow, path, self.channels, self.background)
        except Exception as error:  # a decoder can raise any exception on a damaged file
            raise decoding_error(pillow, self.paths, self.channels) from error
        height, width = pixels.shape[1:]
        if self.size is None:
            if (height, width) != self.native:
                others = f", which {self.size_from!r} has" if self.size_from else ""
                raise SteradError(
                    f"the image {path!r} has {width}x{height} pixels instead of "
                    f"{self.native[1]}x{self.native[0]}{others}: give image_size to resize all "
                    "images"
                )
            return pixels
        try:
            return _fit_size(pixels, self.size, self.fit, SHADES[self.background])
        except SteradError as error:
            raise SteradError(f"the image {path!r}: {error}") from error


def _fit_size(pixels: ByteArray, size: tuple[int, int], fit: Fit, shade: int) -> ByteArray:
    """Return an image (c, h, w) in the given height and width."""
    (height, width), (new_height, new_width) = pixels.shape[1:], size
    is_wide = width * new_height > height * new_width
    if fit == "crop":
        if is_wide:
            pixels = _center(pixels, height, _divide(height * new_width, new_height))
        else:
            pixels = _center(pixels, _divide(width * new_height, new_width), width)
    elif fit == "pad":
        if is_wide:
            inner = _divide(height * new_width, width), new_width
        else:
            inner = new_height, _divide(width * new_height, height)
        padded = np.full((len(pixels), *size), shade, np.uint8)
        _center(padded, *inner)[:] = area_resize(pixels[None], inner)[0]
        return padded
    resized: ByteArray = area_resize(pixels[None], size)[0]
    return resized


def _center(pixels: ByteArray, height: int, width: int) -> ByteArray:
    """Return the center of an image, as a view."""
    top, left = (pixels.shape[1] - height) // 2, (pixels.shape[2] - width) // 2
    return pixels[:, top : top + height, left : left + width]


def _divide(product: int, divisor: int) -> int:
    """Return the quotient, rounded, and at least 1."""
    return max(1, (2 * product + divisor) // (2 * divisor))


def decoding_error(pillow: ModuleType, paths: Sequence[str], channels: int) -> SteradError:
    """Return an error that lists all files that cannot be decoded."""

    def failure(path: str) -> str | None:
        try:
            read_pixels(pillow, path, channels)
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


def open_image(pillow: ModuleType, path: str) -> Any:
    """Open an image without decoding it; raise an error if it is too large to decode."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # opening a FIFO would wait for a writer
        raise SteradError("it is not a regular file")
    if status.st_size > MAX_FILE_BYTES:
        raise SteradError(f"it has {status.st_size:,} bytes, more than {MAX_FILE_BYTES:,}")
    # From memory: reading a file allocates whatever length a damaged chunk claims.
    image = pillow.open(io.BytesIO(Path(path).read_bytes()), formats=FORMATS)
    if image.width * image.height > MAX_PIXELS:
        image.close()
        raise SteradError(f"it has {image.width}x{image.height} pixels, more than {MAX_PIXELS:,}")
    return image


def read_pixels(
    pillow: ModuleType, path: str, channels: int, background: Background = "white"
) -> ByteArray:
    """Decode an image to uint8 (channels, h, w), turned as its EXIF orientation says."""
    mode = "RGB" if channels == 3 else "L"
    with open_image(pillow, path) as image:
        quarters, is_mirrored = TURNS.get(_read_orientation(image), (0, False))
        image = _to_8_bits(pillow, image)
        if image.mode in ALPHA_MODES or "transparency" in image.info:
            image = image.convert("RGBA")
            shade = SHADES[background]
            behind = pillow.new("RGBA", image.size, (shade, shade, shade, 255))
            image = pillow.alpha_composite(behind, image)
        decoded = np.asarray(image.convert(mode))
    turned = np.rot90(decoded, quarters)
    turned = turned[:, ::-1] if is_mirrored else turned
    return turned.transpose(2, 0, 1) if channels == 3 else turned[None]


def _read_orientation(image: Any) -> int:
    """Return the EXIF orientation of an image; 1, upright, if there is none."""
    with suppress(Exception):  # damaged EXIF data say nothing about the pixels
        orientation: int = image.getexif().get(ORIENTATION_TAG, 1)
        return orientation
    return 1


def _to_8_bits(pillow: ModuleType, image: Any) -> Any:
    """Return an image with 16 bits per channel divided by 257, so that 65,535 becomes 255."""
    is_deep = image.mode.startswith("I;16")
    if image.mode in DEEP_MODES and image.format not in DEEP_FORMATS:
        raise SteradError(
            f"it has 32 bits per channel, mode {image.mode}; save it with 8 or 16 bits"
        )
    if not is_deep and image.mode not in DEEP_MODES:
        return image
    values = np.asarray(image).astype(np.int64)
    return pillow.fromarray(((values + 128) // 257).clip(0, 255).astype(np.uint8))


def list_class_images(
    folders: Sequence[Path], remedy: str | None = None
) -> tuple[list[str], IntArray]:
    """Return the images of all folders, and for each image the index of its folder.

    With a remedy, which an error message gives, every folder must have an image. A folder that
    links lead to more than once is listed once.
    """
    visited: set[tuple[int, int]] = set()
    images = [list_images(folder, visited) for folder in folders]
    for folder, found in zip(folders, images, strict=True):
        if not found and remedy:
            raise SteradError(f"there is no image in {str(folder)!r}: {remedy}")
    index = np.repeat(np.arange(len(folders)), [len(found) for found in images])
    return [path for found in images for path in found], index


def list_images(folder: Path, visited: set[tuple[int, int]]) -> list[str]:
    """Return the image files in a folder and its sub-folders in natural order.

    For example, a_2.png precedes a_10.png. `visited` has the device and inode of the folders that
    are already listed: links can form loops.
    """
    found: list[str] = []
    pending = [str(folder)] if folder.is_dir() else []
    while pending:
        home = pending.pop()
        with reading(home, "make the folder readable, or remove it"):
            status = os.stat(home)
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited.add((status.st_dev, status.st_ino))
            with os.scandir(home) as entries:
                paths = [e.path for e in sorted(entries, key=lambda e: natural_key(e.name))]
        pending += reversed([path for path in paths if os.path.isdir(path)])
        found += [path for path in paths if not os.path.isdir(path) and _is_image(path)]
    return found


def _is_image(path: str) -> bool:
    """Return whether the name is that of an image; raise an error if it is no regular file."""
    name = os.path.basename(path)
    if name[0] == "." or os.path.splitext(name)[1].lower() not in SUFFIXES:
        return False
    if not os.path.isfile(path):
        raise SteradError(
            f"{path!r} is not a regular file but a broken link, FIFO, socket or device: replace or "
            "remove it"
        )
    return True


def find_shared_images(train: Sequence[str], test: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of a train and a test image whose files have the same bytes.

    Only files of equal size are read. Equal pixels in different files are not found.
    """
    sizes = {os.path.getsize(path) for path in train}
    candidates = [path for path in test if os.path.getsize(path) in sizes]
    sizes = {os.path.getsize(path) for path in candidates}
    known = {_file_digest(path): path for path in train if os.path.getsize(path) in sizes}
    digests = ((path, _file_digest(path)) for path in candidates)
    return [(known[digest], path) for path, digest in digests if digest in known]


def _file_digest(path: str) -> bytes:
    with reading(path, "make the file readable, or remove it"), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that compares the numbers in names by value.

    >>> sorted(["s10", "s2", "s1"], key=natural_key)
    ['s1', 's2', 's10']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]
