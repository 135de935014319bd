"""Read pickles that contain only numpy arrays, bytes, strings, numbers and containers.

`pickle.load` calls any function that a pickle names, and allocates any size that it declares. This
reader executes a fixed list of operations itself. It calls no function that is not defined here and
allocates no more memory than a small multiple of the size of the file.
"""

import math
import mmap
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from sterad.data.sources import OFFICIAL_REMEDY, invalid_file
from sterad.errors import SteradError
from sterad.files import reading

ALLOWED_KINDS = "biufS"
"""Kinds of dtype: booleans, integers, floats and byte strings, but not objects."""
MAX_BYTES = 1 << 32
"""Size of a pickle and of an array in it."""
MAX_AXES = 8
"""Axes of an array, and arguments of a function."""
MAX_OPERATIONS = 1_000_000
"""Operations of one pickle; one of CIFAR-100 has 200,000. An operation of one byte makes an object
of up to 64 bytes."""
BYTE_STRINGS = frozenset({"STRING", "BINSTRING", "SHORT_BINSTRING"})
"""Strings of Python 2, which pickletools decodes as Latin-1."""
VALUES = BYTE_STRINGS | {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}
"""Operations that push their argument."""
CONSTANTS: dict[str, Callable[[], object]] = {
    **{"NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False},
    **{"EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_DICT": dict},
}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class ForbiddenError(SteradError):
    """A pickle contains something that is not allowed."""


class PickledType:
    """A dtype under construction: a type code, then a byte order."""

    def __init__(self, code: Any, *_: object) -> None:
        """Check the type code."""
        text = _to_text(code, "an array of a type")
        self.dtype = np.dtype(text)
        if self.dtype.kind not in ALLOWED_KINDS or not self.dtype.itemsize:
            raise ForbiddenError(f"an array of {self.dtype}")

    def set_state(self, state: Any) -> None:
        """Set the byte order; the rest of the state is for dtypes that are not allowed."""
        order = _to_text(state[1], "a byte order")
        if order not in ("<", ">", "=", "|"):
            raise ForbiddenError(f"a byte order {order!r}")
        self.dtype = self.dtype.newbyteorder(order)  # type: ignore[arg-type]


class PickledArray:
    """An array under construction."""

    def __init__(self, *_: object) -> None:
        """Start without values: they are in the state."""
        self.array: npt.NDArray[Any] = np.empty(0, np.uint8)

    def set_state(self, state: Any) -> None:
        """Set shape and values."""
        _, shape, kind, is_fortran, raw = state
        self.array = _make_array(raw, kind, shape, "F" if is_fortran else "C").array


def _to_text(value: Any, what: str) -> str:
    # The representation of any other value can be exponentially longer than the pickle.
    if not isinstance(value, str | bytes) or len(value) > 8:
        raise ForbiddenError(f"{what} that is not a short string")
    return value.decode("ascii") if isinstance(value, bytes) else value


def _make_array(raw: Any, kind: Any, shape: Any, order: Any) -> PickledArray:
    """Return a view of the bytes `raw`; nothing is copied, so that repetition costs nothing."""
    if not isinstance(kind, PickledType) or not isinstance(raw, bytes | bytearray):
        raise ForbiddenError(f"an array made of {type(raw).__name__}")
    is_short = isinstance(shape, tuple) and len(shape) <= MAX_AXES
    if not is_short or not all(type(n) is int and 0 <= n <= MAX_BYTES for n in shape):
        raise ForbiddenError("an array of a shape that is not a short tuple of numbers")
    if math.prod(shape) * kind.dtype.itemsize != len(raw):
        raise ForbiddenError(f"an array of {len(shape)} axes with {len(raw)} bytes")
    made = PickledArray()
    made.array = np.frombuffer(raw, kind.dtype).reshape(shape, order="F" if order == "F" else "C")
    return made


def _scalar(kind: Any, raw: Any) -> Any:
    raw = raw.encode("latin1") if isinstance(raw, str) else raw
    return _make_array(raw, kind, (), "C").array.item()


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1", "latin-1"):
        raise ForbiddenError("an encoding other than latin1")
    return text.encode("latin1")


def _reject_call(*_: object) -> None:
    raise ForbiddenError("a call of numpy.ndarray")


ALLOWED: dict[str, Callable[..., Any]] = {
    "_codecs.encode": _encode,
    "numpy.ndarray": _reject_call,  # an argument of _reconstruct, never called
    "numpy.dtype": PickledType,
}
for _package in ("numpy.core", "numpy._core"):
    ALLOWED[f"{_package}.multiarray._reconstruct"] = PickledArray
    ALLOWED[f"{_package}.multiarray.scalar"] = _scalar
    ALLOWED[f"{_package}.numeric._frombuffer"] = _make_array


class _Reader:
    """The stack and the memo of a pickle that is executed."""

    def __init__(self, size: int) -> None:
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.text_budget = 4 * size
        """Characters that may still be encoded: a short pickle could encode one text often."""

    def execute(self, name: str, argument: Any) -> None:
        """Execute one operation."""
        if name in VALUES:
            self.stack.append(argument.encode("latin1") if name in BYTE_STRINGS else argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name]())
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name == "MARK":
            self.marked.append(self.stack)
            self.stack = []
        elif name in TUPLES:
            self.stack.append(tuple(self.pop(TUPLES[name])))
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            parts = argument.split(" ") if name == "GLOBAL" else self.pop(2)
            self.stack.append(_find_function(".".join(parts)))
        elif name == "REDUCE":
            self.stack.append(self.call(*self.pop(2)))
        elif name == "BUILD":
            (state,) = self.pop(1)
            if not isinstance(self.stack[-1], PickledType | PickledArray):
                raise ForbiddenError("a change of an object that is not an array")
            self.stack[-1].set_state(state)
        elif name not in ("PROTO", "FRAME", "STOP"):
            self.fill_container(name)

    def fill_container(self, name: str) -> None:
        """Execute an operation that makes or fills a tuple, list or dictionary."""
        if name in ("APPEND", "SETITEM"):
            items = self.pop(1 if name == "APPEND" else 2)
        elif name in ("TUPLE", "LIST", "DICT", "APPENDS", "SETITEMS"):
            items, self.stack = self.stack, self.marked.pop()
        else:
            raise ForbiddenError(f"the operation {name}")
        if name in ("TUPLE", "LIST", "DICT"):
            self.stack.append({"TUPLE": tuple(items), "LIST": items, "DICT": {}}[name])
        target = self.stack[-1]
        if name in ("APPEND", "APPENDS") and isinstance(target, list):
            target.extend(items)
        elif name in ("DICT", "SETITEM", "SETITEMS") and isinstance(target, dict):
            # The hash of a nested tuple can take exponential time.
            if not all(isinstance(key, str | bytes) for key in items[::2]):
                raise ForbiddenError("a dictionary with keys that are not strings")
            target.update(zip(items[::2], items[1::2], strict=True))
        elif name not in ("TUPLE", "LIST"):
            raise ForbiddenError(f"the operation {name} on a {type(target).__name__}")

    def pop(self, count: int) -> list[Any]:
        """Remove and return the last values of the stack."""
        items = self.stack[-count:]
        if len(items) != count:
            raise ForbiddenError("an operation without its values")
        del self.stack[-count:]
        return items

    def call(self, function: Any, arguments: Any) -> Any:
        """Call an allowed function; nothing else that can be on the stack is callable."""
        if not callable(function) or not isinstance(arguments, tuple) or len(arguments) > MAX_AXES:
            raise ForbiddenError("a call of something that is not a function")
        self.text_budget -= sum(len(text) for text in arguments if isinstance(text, str))
        if self.text_budget < 0:
            raise ForbiddenError("one text many times")
        return function(*arguments)


def _find_function(name: str) -> Callable[..., Any]:
    if name not in ALLOWED:
        raise ForbiddenError(name)
    return ALLOWED[name]


def read_pickle(path: Path) -> dict[bytes, Any]:
    """Return the dictionary in a pickle; its keys and the strings of Python 2 are bytes."""
    with reading(path, OFFICIAL_REMEDY), open(path, "rb") as file:
        try:
            found = _execute_all(file.fileno())
        except ForbiddenError as error:
            raise invalid_file(
                path,
                f"contains {error}, but only numpy arrays of numbers, bytes, strings, numbers and "
                "containers are allowed",
            ) from error
    if not isinstance(found, dict):
        raise invalid_file(path, f"contains a {type(found).__name__} instead of a dictionary")
    return {
        key.encode() if isinstance(key, str) else key: (
            value.array if isinstance(value, PickledArray) else value
        )
        for key, value in found.items()
    }


def _execute_all(descriptor: int) -> Any:
    # A read of a mapped file allocates no more bytes than the file has, whatever it declares.
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
        if len(content) > MAX_BYTES:
            raise ForbiddenError(f"more than {MAX_BYTES:,} bytes")
        reader = _Reader(len(content))
        for count, (operation, argument, _) in enumerate(
            pickletools.genops(cast(IO[bytes], content))
        ):
            if count == MAX_OPERATIONS:
                raise ForbiddenError(f"more than {MAX_OPERATIONS:,} operations")
            reader.execute(operation.name, argument)
        return reader.pop(1)[0]
