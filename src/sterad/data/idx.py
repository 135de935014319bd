"""`mnist`, `fashion-mnist` and `kmnist`: idx files, uncompressed or gzipped.

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

from sterad.data.description import DATASETS
from sterad.data.sources import Layout, find_layout
from sterad.data.stored import Contents, Split, StoredDataset
from sterad.errors import SteradError

IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
MAX_BYTES = 1 << 32
"""Largest unpacked size of an idx file; a damaged header can declare any size."""
UINT8_CODE = 0x08
"""Type code of unsigned bytes in an idx header."""


def _file_names(file: str) -> tuple[str, ...]:
    """Return the names under which an idx file is distributed."""
    dotted = file.replace("-idx", ".idx")
    return file, f"{file}.gz", dotted, f"{dotted}.gz"


@dataclass(frozen=True)
class _Idx(StoredDataset):
    class_names: ClassVar[tuple[str, ...]]
    folders: ClassVar[tuple[str, ...]]
    """Folders in the root that are searched."""
    system_folders: ClassVar[tuple[Path, ...]] = ()
    """Folders outside the root that are searched."""

    def contents(self) -> Contents:
        """Read the four files."""
        files = tuple(map(_file_names, IDX_FILES))
        layouts = [Layout(folder, files) for folder in self.folders]
        home, layout = find_layout(self.name, self.root_folder, layouts, self.system_folders)
        paths = layout.paths(home)
        train_images, train_labels, test_images, test_labels = map(read_idx, paths)
        return Contents(
            train=_make_split(train_images, train_labels, paths[0]),
            test=_make_split(test_images, test_labels, paths[2]),
            class_names=self.class_names,
            sources=tuple(paths),
        )


@DATASETS.register("mnist", alias=("seq-mnist", "split-mnist"))
@dataclass(frozen=True)
class Mnist(_Idx):
    """MNIST: 60,000 training and 10,000 test images of digits, 28x28 pixels, gray."""

    name: ClassVar[str] = "mnist"
    flips: ClassVar[bool] = False
    class_names: ClassVar[tuple[str, ...]] = tuple("0123456789")
    folders: ClassVar[tuple[str, ...]] = ("mnist", "MNIST/raw")


@DATASETS.register("fashion-mnist", alias=("fmnist", "fashionmnist"))
@dataclass(frozen=True)
class FashionMnist(_Idx):
    """Fashion-MNIST: 60,000 training and 10,000 test images of clothing, 28x28 pixels, gray."""

    name: ClassVar[str] = "fashion-mnist"
    class_names: ClassVar[tuple[str, ...]] = (
        *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    )
    folders: ClassVar[tuple[str, ...]] = ("fashion-mnist", "FashionMNIST/raw")
    system_folders: ClassVar[tuple[Path, ...]] = (Path("/usr/share/datasets/fashion-mnist"),)
    """Folder of the Debian package dataset-fashion-mnist."""


@DATASETS.register("kmnist")
@dataclass(frozen=True)
class Kmnist(_Idx):
    """Kuzushiji-MNIST: 60,000 training and 10,000 test images of characters, 28x28 pixels, gray."""

    name: ClassVar[str] = "kmnist"
    flips: ClassVar[bool] = False
    class_names: ClassVar[tuple[str, ...]] = tuple("おきすつなはまやれを")
    folders: ClassVar[tuple[str, ...]] = ("kmnist", "KMNIST/raw")


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return the array in an idx file of bytes.

    The header has four bytes (two zeros, the type code and the number of axes), followed by the
    length of each axis as a big-endian uint32.
    """
    try:
        with _open_file(path) as file:
            zeros, dtype, axes = struct.unpack(">HBB", file.read(4))
            if zeros or dtype != UINT8_CODE or not 1 <= axes <= 4:
                raise SteradError(
                    f"{str(path)!r} is not an idx file of bytes: download the official file"
                )
            shape = struct.unpack(f">{axes}I", file.read(4 * axes))
            if math.prod(shape) > MAX_BYTES:
                raise SteradError(
                    f"{str(path)!r} declares the shape {shape}, more than {MAX_BYTES:,} bytes: "
                    "download the official file"
                )
            content = file.read(math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise SteradError(
            f"{str(path)!r} is truncated or cannot be read ({error}): download it again"
        ) from error
    if len(content) != math.prod(shape):
        raise SteradError(
            f"{str(path)!r} must have {math.prod(shape)} values for its shape {shape} and has "
            f"{'more' if len(content) > math.prod(shape) else len(content)}: download it again"
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _open_file(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else open(path, "rb"))


def _make_split(images: npt.NDArray[np.uint8], labels: npt.NDArray[np.uint8], path: Path) -> Split:
    if images.ndim != 3 or labels.ndim != 1:
        raise SteradError(
            f"{str(path)!r} has {images.ndim} axes and its labels have {labels.ndim}, instead of 3 "
            "and 1: download the official files"
        )
    if images.shape[1] != images.shape[2]:
        raise SteradError(
            f"the images in {str(path)!r} have shape {images.shape[1:]} and must be square: "
            "download the official files"
        )
    what = f"images in {str(path)!r}"
    return Split.from_arrays(images[:, None], labels.astype(np.int64), what)
