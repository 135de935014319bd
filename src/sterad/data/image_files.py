"""Find image files and decode them with Pillow in threads, to one size and channel count."""

import hashlib
import io
import os
import re
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

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


def _read_pixels(pillow: ModuleType, path: str, channels: int) -> ByteArray:
    with open_image(pillow, path) as image:
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
