"""`mnist`, `fashion-mnist` and `kmnist`: idx files, uncompressed or gzipped.

Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits", 1998.
H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", 2017, https://arxiv.org/abs/1708.07747.
T. Clanuwat et al., "Deep Learning for Classical Japanese Literature", 2018,
https://arxiv.org/abs/1812.01718.
"""

import gzip
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sterad.data.archive import max_unpacked_bytes
from sterad.data.arrays import ByteArray
from sterad.data.dataset_config import DATASETS
from sterad.data.file_dataset import Contents, FileDataset, Layout, Split
from sterad.data.sources import OFFICIAL_REMEDY, SOURCES, invalid_file
from sterad.files import reading

UINT8_CODE = 0x08
"""Type code of unsigned bytes in an idx header."""
FILES = tuple(
    (name, f"{name}.gz", name.replace("-idx", ".idx"), name.replace("-idx", ".idx") + ".gz")
    for split in ("train", "t10k")
    for name in (f"{split}-images-idx3-ubyte", f"{split}-labels-idx1-ubyte")
)
"""The four files, each with the names under which it is distributed."""


@dataclass(frozen=True)
class _Idx(FileDataset):
    folders: ClassVar[tuple[str, ...]]
    """Folders in the root that are searched."""

    def contents(self) -> Contents:
        """Read the four files."""
        home, layout = self.find_layout(*(Layout(folder, FILES) for folder in self.folders))
        paths = layout.paths(home)
        train_images, train_labels, test_images, test_labels = map(read_idx, paths)
        return Contents(
            train=_make_split(train_images, train_labels, paths[0]),
            test=_make_split(test_images, test_labels, paths[2]),
            class_names=SOURCES[self.name].class_names,
            sources=tuple(paths),
        )


@DATASETS.register("mnist", alias=("seq-mnist", "split-mnist"))
@dataclass(frozen=True)
class Mnist(_Idx):
    """MNIST: 60,000 training and 10,000 test images of digits, 28x28 pixels, gray."""

    name: ClassVar[str] = "mnist"
    folders: ClassVar[tuple[str, ...]] = ("mnist", "MNIST/raw")


@DATASETS.register("fashion-mnist", alias=("fmnist", "fashionmnist"))
@dataclass(frozen=True)
class FashionMnist(_Idx):
    """Fashion-MNIST: 60,000 training and 10,000 test images of clothing, 28x28 pixels, gray."""

    name: ClassVar[str] = "fashion-mnist"
    folders: ClassVar[tuple[str, ...]] = ("fashion-mnist", "FashionMNIST/raw")
    system_folders: ClassVar[tuple[Path, ...]] = (Path("/usr/share/datasets/fashion-mnist"),)
    """Folder of the Debian package dataset-fashion-mnist."""


@DATASETS.register("kmnist")
@dataclass(frozen=True)
class Kmnist(_Idx):
    """Kuzushiji-MNIST: 60,000 training and 10,000 test images of characters, 28x28 pixels, gray."""

    name: ClassVar[str] = "kmnist"
    folders: ClassVar[tuple[str, ...]] = ("kmnist", "KMNIST/raw")


def read_idx(path: Path) -> ByteArray:
    """Return the array in an idx file of bytes.

    The header has four bytes (two zeros, the type code and the number of axes), followed by the
    length of each axis as a big-endian uint32.
    """
    is_packed = path.suffix == ".gz"
    with reading(path, OFFICIAL_REMEDY), gzip.open(path) if is_packed else open(path, "rb") as file:
        zeros, dtype, axes = struct.unpack(">HBB", file.read(4))
        if zeros or dtype != UINT8_CODE or not 1 <= axes <= 4:
            raise invalid_file(path, "is not an idx file of bytes")
        shape = struct.unpack(f">{axes}I", file.read(4 * axes))
        limit = max_unpacked_bytes(path) if is_packed else path.stat().st_size
        if (size := math.prod(shape)) > limit:
            raise invalid_file(path, f"declares the shape {shape}, more than {limit:,} bytes")
        content = file.read(size + 1)
    if len(content) != size:
        found = "more" if len(content) > size else len(content)
        raise invalid_file(path, f"must have {size} values for its shape {shape} and has {found}")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _make_split(images: ByteArray, labels: ByteArray, path: Path) -> Split:
    is_square = images.ndim == 3 and images.shape[1] == images.shape[2]
    if not is_square or labels.shape != images.shape[:1]:
        raise invalid_file(
            path,
            f"has images of shape {images.shape} with labels of shape {labels.shape} instead of "
            "(N, h, h) and (N,)",
        )
    return Split(labels.astype(np.int64), lambda positions: images[positions, None])
