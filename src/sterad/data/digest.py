"""Digests of contents: equal for equal data, wherever and however they are stored."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

ROWS_AT_ONCE = 4096
"""Rows hashed in one go, so that a memory-mapped array is never in memory whole."""


def array_digest(array: npt.NDArray[Any]) -> str:
    """Return the SHA-256 of an array's type, shape and values."""
    found = hashlib.sha256(array_header(array.dtype, array.shape))
    for start in range(0, len(array), ROWS_AT_ONCE):
        found.update(array_bytes(array[start : start + ROWS_AT_ONCE]))
    return found.hexdigest()


def array_header(dtype: np.dtype[Any], shape: Iterable[int]) -> bytes:
    """Return what stands before the values of an array in its digest."""
    return f"{dtype.str} {tuple(shape)}".encode()


def array_bytes(array: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of an array in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def content_digest(arrays: Mapping[str, str], class_names: Iterable[str]) -> str:
    """Return one digest, 16 hex digits, of the digests of named arrays and the classes' names."""
    text = repr((sorted(arrays.items()), list(class_names)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
