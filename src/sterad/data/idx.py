"""`mnist`, `fashion-mnist` and `kmnist`: idx files, plain or gzipped.

Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", 1998.
H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", 2017, https://arxiv.org/abs/1708.07747.
T. Clanuwat et al., "Deep Learning for Classical Japanese Literature", 2018,
https://arxiv.org/abs/1812.01718.
"""

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sterad.data.contents import Contents, Split
from sterad.data.description import DATASETS
from sterad.data.layout import Layout, find_layout
from sterad.data.sources import IDX
from sterad.data.stored import Stored
from sterad.errors import SteradError

LARGEST = 1 << 32
"""Bytes that one idx file may unpack to: a header can ask for anything."""
BYTES = 0x08
"""The idx code of unsigned bytes."""


def _spellings(file: str) -> tuple[str, ...]:
    dotted = file.replace("-idx", ".idx")
    return file, f"{file}.gz", dotted, f"{dotted}.gz"


@dataclass(frozen=True)
class _Idx(Stored):
    class_names: ClassVar[tuple[str, ...]]
    folders: ClassVar[tuple[str, ...]]
    """Folders under the root in which people keep it."""
    elsewhere: ClassVar[tuple[Path, ...]] = ()

    def contents(self) -> Contents:
        """Read the four files."""
        files = tuple(map(_spellings, IDX))
        layouts = [Layout(folder, files) for folder in self.folders]
        home, layout = find_layout(self.name, self.place, layouts, self.elsewhere)
        paths = layout.paths(home)
        train_images, train_labels, test_images, test_labels = map(read_idx, paths)
        return Contents(
            train=_split(train_images, train_labels, paths[0]),
            test=_split(test_images, test_labels, paths[2]),
            class_names=self.class_names,
            sources=tuple(paths),
        )


@DATASETS.register("mnist", alias=("seq-mnist", "split-mnist"))
@dataclass(frozen=True)
class Mnist(_Idx):
    """MNIST: 60,000 and 10,000 handwritten digits of 28x28 pixels, grey."""

    name: ClassVar[str] = "mnist"
    flips: ClassVar[bool] = False
    class_names: ClassVar[tuple[str, ...]] = tuple("0123456789")
    folders: ClassVar[tuple[str, ...]] = ("mnist", "MNIST/raw")


@DATASETS.register("fashion-mnist", alias=("fmnist", "fashionmnist"))
@dataclass(frozen=True)
class FashionMnist(_Idx):
    """Fashion-MNIST: 60,000 and 10,000 articles of clothing of 28x28 pixels, grey."""

    name: ClassVar[str] = "fashion-mnist"
    class_names: ClassVar[tuple[str, ...]] = (
        *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    )
    folders: ClassVar[tuple[str, ...]] = ("fashion-mnist", "FashionMNIST/raw")
    elsewhere: ClassVar[tuple[Path, ...]] = (Path("/usr/share/datasets/fashion-mnist"),)
    """Where Debian's package dataset-fashion-mnist puts it."""


@DATASETS.register("kmnist")
@dataclass(frozen=True)
class Kmnist(_Idx):
    """Kuzushiji-MNIST: 60,000 and 10,000 cursive characters of 28x28 pixels, grey."""

    name: ClassVar[str] = "kmnist"
    flips: ClassVar[bool] = False
    class_names: ClassVar[tuple[str, ...]] = tuple("おきすつなはまやれを")
    folders: ClassVar[tuple[str, ...]] = ("kmnist", "KMNIST/raw")


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return the bytes of an idx file in their shape.

    Four bytes come first: two zeros, the type and the number of axes; then each axis, big-endian.
    """
    try:
        with _opened(path) as file:
            zeros, kind, axes = struct.unpack(">HBB", file.read(4))
            if zeros or kind != BYTES or not 1 <= axes <= 4:
                raise SteradError(
                    f"{str(path)!r} is not an idx file of bytes: fetch the official file"
                )
            shape = struct.unpack(f">{axes}I", file.read(4 * axes))
            if math.prod(shape) > LARGEST:
                raise SteradError(
                    f"{str(path)!r} claims the shape {shape}, more than {LARGEST:,} bytes: "
                    "fetch the official file"
                )
            content = file.read(math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise SteradError(
            f"{str(path)!r} cannot be read to its end ({error}): fetch it again"
        ) from error
    if len(content) != math.prod(shape):
        raise SteradError(
            f"{str(path)!r} must hold {math.prod(shape)} values for its shape {shape} and holds "
            f"{'more' if len(content) > math.prod(shape) else len(content)}: fetch it again"
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else open(path, "rb"))


def _split(images: npt.NDArray[np.uint8], labels: npt.NDArray[np.uint8], path: Path) -> Split:
    if images.ndim != 3 or labels.ndim != 1:
        raise SteradError(
            f"{str(path)!r} holds {images.ndim} axes and its labels {labels.ndim}, where 3 and 1 "
            "belong: fetch the official files"
        )
    if images.shape[1] != images.shape[2]:
        raise SteradError(f"{str(path)!r} holds images of {images.shape[1:]}: they must be square")
    what = f"images in {str(path)!r}"
    return Split.of_arrays(images[:, None], labels.astype(np.int64), what)
