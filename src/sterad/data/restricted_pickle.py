"""Pickles of numpy arrays, bytes, strings, numbers and containers, and of nothing else.

A pickle is a program, and Python's own reader runs it. This one lets it call five things, all
defined here: none can do more than make an array of plain numbers out of bytes in the file.
"""

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sterad.errors import SteradError

PLAIN_KINDS = "biufS"
"""Booleans, integers, floats, byte strings: never objects."""


class ForeignError(Exception):
    """A pickle asks for something that is not admitted."""


class Admitted:
    """Something that a pickle may name and call; it has no state that a pickle could change."""

    __slots__ = ("_call",)
    _call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any]) -> None:
        """Wrap what is called."""
        object.__setattr__(self, "_call", call)

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return self._call(*arguments)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse."""
        raise ForeignError("a change of what it calls")

    def __setstate__(self, state: object) -> None:
        """Refuse."""
        raise ForeignError("a change of what it calls")


class PickledType:
    """The type of an array on its way: a code, then a byte order."""

    __slots__ = ("dtype",)

    def __init__(self, code: object, *_: object) -> None:
        """Admit plain kinds by their code."""
        text = code.decode("ascii") if isinstance(code, bytes) else code
        if not isinstance(text, str) or len(text) > 8:
            raise ForeignError(f"an array of type {code!r}")
        self.dtype = np.dtype(text)
        if self.dtype.kind not in PLAIN_KINDS:
            raise ForeignError(f"an array of {self.dtype}")

    def __setstate__(self, state: Any) -> None:
        """Take the byte order; everything else of numpy's state is for types not admitted here."""
        order: Any = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "=", "|"):
            raise ForeignError(f"a byte order {order!r}")
        self.dtype = self.dtype.newbyteorder(order)


class PickledArray(np.ndarray[Any, Any]):
    """An array whose state is checked before numpy sees it."""

    def __setstate__(self, state: Any) -> None:
        """Take shape and bytes that agree with each other."""
        _, shape, kind, fortran, raw = state
        _check(shape, kind, raw)
        plain: Any = (1, shape, kind.dtype, bool(fortran), bytes(raw))
        super().__setstate__(plain)


def _check(shape: Any, kind: Any, raw: Any) -> None:
    if not isinstance(kind, PickledType) or not isinstance(raw, bytes | bytearray):
        raise ForeignError(f"an array made of {type(raw).__name__}")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ForeignError(f"an array of shape {shape!r}")
    if math.prod(shape) * kind.dtype.itemsize != len(raw):
        raise ForeignError(f"an array of shape {shape} with {len(raw)} bytes")


def _reconstruct(*_: object) -> PickledArray:
    return PickledArray((0,), np.uint8)


def _from_buffer(raw: Any, kind: Any, shape: Any, order: Any) -> npt.NDArray[Any]:
    _check(shape, kind, raw)
    return np.frombuffer(raw, kind.dtype).reshape(shape, order="F" if order == "F" else "C")


def _scalar(kind: Any, raw: Any) -> Any:
    raw = raw.encode("latin1") if isinstance(raw, str) else raw
    _check((), kind, raw)
    return np.frombuffer(raw, kind.dtype)[0].item()


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1", "latin-1"):
        raise ForeignError(f"an encoding {encoding!r}")
    return text.encode("latin1")


def _not_called(*_: object) -> None:
    raise ForeignError("a call of numpy.ndarray")


ADMITTED = {
    "_codecs.encode": Admitted(_encode),
    "numpy.ndarray": Admitted(_not_called),  # only ever an argument
    "numpy.dtype": Admitted(PickledType),
}
for _package in ("numpy.core", "numpy._core"):
    ADMITTED[f"{_package}.multiarray._reconstruct"] = Admitted(_reconstruct)
    ADMITTED[f"{_package}.multiarray.scalar"] = Admitted(_scalar)
    ADMITTED[f"{_package}.numeric._frombuffer"] = Admitted(_from_buffer)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return ADMITTED[f"{module}.{name}"]
        except KeyError:
            raise ForeignError(f"{module}.{name}") from None


def read_pickle(path: Path) -> dict[bytes, Any]:
    """Return the dictionary in a pickle; strings of Python 2 are bytes, also as keys."""
    try:
        with open(path, "rb") as file:
            # Python's reader turns `bytes` of Python 2 into str unless it is told not to.
            found = _Reader(file, encoding="bytes").load()
    except ForeignError as error:
        raise SteradError(
            f"the pickle {str(path)!r} holds {error}: admitted are numpy arrays of numbers, bytes, "
            "strings, numbers and containers; fetch the official file"
        ) from error
    except OSError as error:
        raise SteradError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except Exception as error:  # a damaged pickle can raise anything
        raise SteradError(
            f"the pickle {str(path)!r} is damaged or cut short ({type(error).__name__}: {error}): "
            "fetch the official file again"
        ) from error
    if not isinstance(found, dict):
        raise SteradError(
            f"the pickle {str(path)!r} holds a {type(found).__name__} where a dictionary belongs: "
            "fetch the official file"
        )
    return {key.encode() if isinstance(key, str) else key: value for key, value in found.items()}
