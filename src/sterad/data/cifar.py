"""`cifar10` and `cifar100`: 60,000 photographs of 32x32 pixels, in both official formats.

A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009,
https://www.cs.toronto.edu/~kriz/cifar.html. CIFAR-100 uses the fine labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sterad.data.arrays import area_resize
from sterad.data.description import DATASETS
from sterad.data.restricted_pickle import read_pickle
from sterad.data.sources import Layout, find_layout
from sterad.data.stored import Contents, Split, StoredDataset
from sterad.errors import SteradError

VALUES_PER_IMAGE = 3 * 32 * 32
Batch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class _Cifar(StoredDataset):
    python: ClassVar[Layout]
    """Training files, the test file and the file with the class names."""
    binary: ClassVar[Layout]
    label_key: ClassVar[bytes]
    names_key: ClassVar[bytes]
    names_file: ClassVar[str]
    label_bytes: ClassVar[int]
    """Bytes before the pixels of a binary record; the last one is the label."""
    known_names: ClassVar[tuple[str, ...]]

    def contents(self) -> Contents:
        """Read all files of the format that is found."""
        home, layout = find_layout(self.name, self.root_folder, (self.python, self.binary))
        paths = layout.paths(home)
        if layout is self.python:
            *data, meta = paths
            batches = [_read_pickle_batch(path, self.label_key) for path in data]
            names = _read_pickle_names(meta, self.names_key)
        else:
            batches = [_read_binary_batch(path, self.label_bytes) for path in paths]
            names = _read_text_names(home / self.names_file, self.known_names)
        return Contents(
            train=_join_batches(batches[:-1]),
            test=_join_batches(batches[-1:]),
            class_names=names,
            sources=tuple(paths),
        )


@DATASETS.register("cifar10", alias=("cifar-10", "seq-cifar10", "split-cifar10"))
@dataclass(frozen=True)
class Cifar10(_Cifar):
    """CIFAR-10: 50,000 training and 10,000 test color photographs of 32x32 pixels, 10 classes."""

    name: ClassVar[str] = "cifar10"
    python: ClassVar[Layout] = Layout(
        "cifar-10-batches-py",
        (*((f"data_batch_{i}",) for i in range(1, 6)), ("test_batch",), ("batches.meta",)),
    )
    binary: ClassVar[Layout] = Layout(
        "cifar-10-batches-bin",
        (*((f"data_batch_{i}.bin",) for i in range(1, 6)), ("test_batch.bin",)),
    )
    label_key: ClassVar[bytes] = b"labels"
    names_key: ClassVar[bytes] = b"label_names"
    names_file: ClassVar[str] = "batches.meta.txt"
    label_bytes: ClassVar[int] = 1
    known_names: ClassVar[tuple[str, ...]] = (
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    )


@DATASETS.register("cifar100", alias=("cifar-100", "seq-cifar100", "split-cifar100"))
@dataclass(frozen=True)
class Cifar100(_Cifar):
    """CIFAR-100: 50,000 training and 10,000 test color photographs of 32x32 pixels, 100 classes."""

    name: ClassVar[str] = "cifar100"
    python: ClassVar[Layout] = Layout("cifar-100-python", (("train",), ("test",), ("meta",)))
    binary: ClassVar[Layout] = Layout("cifar-100-binary", (("train.bin",), ("test.bin",)))
    label_key: ClassVar[bytes] = b"fine_labels"
    names_key: ClassVar[bytes] = b"fine_label_names"
    names_file: ClassVar[str] = "fine_label_names.txt"
    label_bytes: ClassVar[int] = 2
    known_names: ClassVar[tuple[str, ...]] = tuple(map(str, range(100)))


def _read_pickle_batch(path: Path, label_key: bytes) -> Batch:
    found = read_pickle(path)
    try:
        data, labels = np.asarray(found[b"data"]), np.asarray(found[label_key])
    except KeyError as error:
        raise SteradError(
            f"the pickle {str(path)!r} has no {error.args[0].decode()!r}: download the official "
            "file"
        ) from error
    if data.ndim != 2 or data.shape[1] != VALUES_PER_IMAGE or data.dtype != np.uint8:
        raise SteradError(
            f"the images in {str(path)!r} are {data.dtype} of shape {data.shape}: they must be "
            f"uint8 of shape (N, {VALUES_PER_IMAGE}); download the official file"
        )
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != len(data):
        raise SteradError(
            f"{str(path)!r} has {labels.size} labels of type {labels.dtype} for {len(data)} "
            "images: download the official file"
        )
    return data, labels.astype(np.int64)


def _read_binary_batch(path: Path, label_bytes: int) -> Batch:
    record = label_bytes + VALUES_PER_IMAGE
    size = path.stat().st_size
    if not size or size % record:
        raise SteradError(
            f"{str(path)!r} has {size} bytes, which is not a multiple of the record size {record}: "
            "it is truncated; download the official file again"
        )
    rows = np.fromfile(path, np.uint8).reshape(-1, record)
    return rows[:, label_bytes:], rows[:, label_bytes - 1].astype(np.int64)


def _join_batches(batches: Sequence[Batch]) -> Split:
    labels = np.concatenate([labels for _, labels in batches])
    starts = np.cumsum([0, *(len(labels) for _, labels in batches)])

    def fetch(positions: npt.NDArray[np.int64], size: int | None) -> npt.NDArray[np.uint8]:
        # Index each batch separately: joining them first would copy every pixel once more.
        batch = np.searchsorted(starts, positions, side="right") - 1
        rows = [batches[b][0][positions[batch == b] - starts[b]] for b in np.unique(batch)]
        return area_resize(np.concatenate(rows).reshape(-1, 3, 32, 32), size)

    return Split(labels, fetch)


def _read_pickle_names(path: Path, key: bytes) -> tuple[str, ...]:
    names: Any = read_pickle(path).get(key)
    if not isinstance(names, list) or not names:
        raise SteradError(f"{str(path)!r} has no list {key.decode()!r}: download the official file")
    return tuple(n.decode("utf-8", "replace") if isinstance(n, bytes) else str(n) for n in names)


def _read_text_names(path: Path, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return one name per line, or the known names if the file is missing or incomplete."""
    if not path.is_file():
        return known
    lines = tuple(line.strip() for line in path.read_text().splitlines() if line.strip())
    return lines if len(lines) == len(known) else known
