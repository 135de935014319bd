"""`cifar10` and `cifar100`: 60,000 photographs of 32x32 pixels, in both official formats.

A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009,
https://www.cs.toronto.edu/~kriz/cifar.html. CIFAR-100 uses the fine labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sterad.data.arrays import ByteArray, IntArray
from sterad.data.dataset_config import DATASETS
from sterad.data.file_dataset import Contents, FileDataset, Layout, Split
from sterad.data.restricted_pickle import read_pickle
from sterad.data.sources import OFFICIAL_REMEDY, SOURCES, invalid_file
from sterad.files import reading

VALUES_PER_IMAGE = 3 * 32 * 32
Batch = tuple[ByteArray, IntArray]


@dataclass(frozen=True)
class _Cifar(FileDataset):
    python: ClassVar[Layout]
    """Training files, the test file and the file with the class names."""
    binary: ClassVar[Layout]
    label_key: ClassVar[bytes]
    names_key: ClassVar[bytes]
    names_file: ClassVar[str]
    label_bytes: ClassVar[int]
    """Bytes before the pixels of a binary record; the last one is the label."""

    def contents(self) -> Contents:
        """Read all files of the format that is found."""
        home, layout = self.find_layout(self.python, self.binary)
        paths = layout.paths(home)
        if layout is self.python:
            *data, meta = paths
            batches = [_read_pickle_batch(path, self.label_key) for path in data]
            names = _read_pickle_names(meta, self.names_key)
        else:
            batches = [_read_binary_batch(path, self.label_bytes) for path in paths]
            names = _read_text_names(home / self.names_file, SOURCES[self.name].class_names)
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


def _read_pickle_batch(path: Path, label_key: bytes) -> Batch:
    found = read_pickle(path)
    for key in (b"data", label_key):
        if key not in found:
            raise invalid_file(path, f"has no {key.decode()!r}")
    data, labels = found[b"data"], found[label_key]
    # Conversion of anything else, such as nested lists, could fill the memory.
    if isinstance(labels, list) and all(type(label) is int for label in labels):
        with reading(path, OFFICIAL_REMEDY):
            labels = np.array(labels, np.int64)
    if not isinstance(data, np.ndarray) or not isinstance(labels, np.ndarray):
        kinds = f"{type(data).__name__} and {type(labels).__name__}"
        raise invalid_file(path, f"has {kinds} instead of an array and a list of integers")
    has_images = data.dtype == np.uint8 and data.shape[1:] == (VALUES_PER_IMAGE,)
    has_labels = labels.dtype.kind in "iu" and labels.shape == data.shape[:1]
    if not (has_images and has_labels):
        raise invalid_file(
            path,
            f"has images as {data.dtype} of shape {data.shape} with labels as {labels.dtype} of "
            f"shape {labels.shape} instead of uint8 (N, {VALUES_PER_IMAGE}) and integers (N,)",
        )
    return data, labels.astype(np.int64)


def _read_binary_batch(path: Path, label_bytes: int) -> Batch:
    record = label_bytes + VALUES_PER_IMAGE
    with reading(path, OFFICIAL_REMEDY):
        content = np.fromfile(path, np.uint8)
    if not content.size or content.size % record:
        problem = f"its {content.size} bytes are not a multiple of the record size {record}"
        raise invalid_file(path, f"is truncated: {problem}")
    rows = content.reshape(-1, record)
    return rows[:, label_bytes:], rows[:, label_bytes - 1].astype(np.int64)


def _join_batches(batches: Sequence[Batch]) -> Split:
    labels = np.concatenate([labels for _, labels in batches])
    starts = np.cumsum([0, *(len(labels) for _, labels in batches)])

    def fetch(positions: IntArray) -> ByteArray:
        # Index each batch separately: joining them first would copy every pixel once more.
        batch = np.searchsorted(starts, positions, side="right") - 1
        rows = [batches[b][0][positions[batch == b] - starts[b]] for b in np.unique(batch)]
        return np.concatenate(rows).reshape(-1, 3, 32, 32)

    return Split(labels, fetch)


def _read_pickle_names(path: Path, key: bytes) -> tuple[str, ...]:
    names: Any = read_pickle(path).get(key)
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
        raise invalid_file(path, f"has no list of names {key.decode()!r}")
    return tuple(n.decode("utf-8", "replace") if isinstance(n, bytes) else n for n in names)


def _read_text_names(path: Path, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return one name per line, or the known names if the file is missing or incomplete."""
    with reading(path, OFFICIAL_REMEDY):
        lines = tuple(path.read_text("utf-8").split()) if path.is_file() else ()
    return lines if len(lines) == len(known) else known
