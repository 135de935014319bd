"""Read pickles that contain only numpy arrays, bytes, strings, numbers and containers.

A pickle can call any function that `pickle.load` can import. This reader allows a fixed list of
functions, all defined here, which can only convert bytes of the file to arrays of numbers.
"""

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sterad.data.sources import invalid_file
from sterad.errors import SteradError

ALLOWED_KINDS = "biufS"
"""Kinds of dtype: booleans, integers, floats and byte strings, but not objects."""


class ForbiddenError(Exception):
    """A pickle contains something that is not allowed."""


class AllowedFunction:
    """A function that a pickle may call, without state that a pickle could change."""

    __slots__ = ("_call",)
    _call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any]) -> None:
        """Wrap a function."""
        object.__setattr__(self, "_call", call)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self._call(*arguments)

    def __setattr__(self, *_: object) -> None:
        """Raise an error: the wrapper is immutable."""
        raise ForbiddenError("a change of an allowed function")

    __setstate__ = __setattr__


class PickledType:
    """A dtype under construction: a type code, then a byte order."""

    __slots__ = ("dtype",)

    def __init__(self, code: object, *_: object) -> None:
        """Check the type code."""
        text = code.decode("ascii") if isinstance(code, bytes) else code
        if not isinstance(text, str) or len(text) > 8:
            raise ForbiddenError(f"an array of type {code!r}")
        self.dtype = np.dtype(text)
        if self.dtype.kind not in ALLOWED_KINDS:
            raise ForbiddenError(f"an array of {self.dtype}")

    def __setstate__(self, state: Any) -> None:
        """Set the byte order; the rest of the state is for dtypes that are not allowed."""
        order: Any = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "=", "|"):
            raise ForbiddenError(f"a byte order {order!r}")
        self.dtype = self.dtype.newbyteorder(order)


class PickledArray(np.ndarray[Any, Any]):
    """An array whose state is validated before it is passed to numpy."""

    def __setstate__(self, state: Any) -> None:
        """Set shape and bytes if their sizes agree."""
        _, shape, kind, fortran, raw = state
        _check_state(shape, kind, raw)
        checked: Any = (1, shape, kind.dtype, bool(fortran), bytes(raw))
        super().__setstate__(checked)


def _check_state(shape: Any, kind: Any, raw: Any) -> None:
    if not isinstance(kind, PickledType) or not isinstance(raw, bytes | bytearray):
        raise ForbiddenError(f"an array made of {type(raw).__name__}")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ForbiddenError(f"an array of shape {shape!r}")
    if math.prod(shape) * kind.dtype.itemsize != len(raw):
        raise ForbiddenError(f"an array of shape {shape} with {len(raw)} bytes")


def _reconstruct(*_: object) -> PickledArray:
    return PickledArray((0,), np.uint8)


def _from_buffer(raw: Any, kind: Any, shape: Any, order: Any) -> npt.NDArray[Any]:
    _check_state(shape, kind, raw)
    return np.frombuffer(raw, kind.dtype).reshape(shape, order="F" if order == "F" else "C")


def _scalar(kind: Any, raw: Any) -> Any:
    raw = raw.encode("latin1") if isinstance(raw, str) else raw
    _check_state((), kind, raw)
    return np.frombuffer(raw, kind.dtype)[0].item()


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1", "latin-1"):
        raise ForbiddenError(f"an encoding {encoding!r}")
    return text.encode("latin1")


def _reject_call(*_: object) -> None:
    raise ForbiddenError("a call of numpy.ndarray")


ALLOWED = {
    "_codecs.encode": AllowedFunction(_encode),
    "numpy.ndarray": AllowedFunction(_reject_call),  # an argument of _reconstruct, never called
    "numpy.dtype": AllowedFunction(PickledType),
}
for _package in ("numpy.core", "numpy._core"):
    ALLOWED[f"{_package}.multiarray._reconstruct"] = AllowedFunction(_reconstruct)
    ALLOWED[f"{_package}.multiarray.scalar"] = AllowedFunction(_scalar)
    ALLOWED[f"{_package}.numeric._frombuffer"] = AllowedFunction(_from_buffer)


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in ALLOWED:
            raise ForbiddenError(f"{module}.{name}")
        return ALLOWED[f"{module}.{name}"]


def read_pickle(path: Path) -> dict[bytes, Any]:
    """Return the dictionary in a pickle; its keys and the strings of Python 2 are bytes."""
    try:
        with open(path, "rb") as file:
            # The default encoding would decode the byte strings of Python 2 to str.
            found = _RestrictedUnpickler(file, encoding="bytes").load()
    except ForbiddenError as error:
        raise invalid_file(
            path,
            f"contains {error}, but only numpy arrays of numbers, bytes, strings, numbers and "
            "containers are allowed",
        ) from error
    except OSError as error:
        raise SteradError(
            f"cannot read {str(path)!r}: {error.strerror}. Check the file and its permissions"
        ) from error
    except Exception as error:  # a damaged pickle can raise any exception
        problem = f"is damaged or truncated ({type(error).__name__}: {error})"
        raise invalid_file(path, problem) from error
    if not isinstance(found, dict):
        raise invalid_file(path, f"contains a {type(found).__name__} instead of a dictionary")
    return {key.encode() if isinstance(key, str) else key: value for key, value in found.items()}
