"""Files that survive a kill, a full disk and a power cut, and readers that never crash."""

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from sterad.errors import SteradError

MAX_JSON_LEVELS = 32
"""Levels of objects and lists in a JSON file; readers of its content are recursive."""

MAX_TEXT_BYTES = 1 << 28
"""Bytes of a record, a config or a log of events; the largest ones have a few megabytes."""


_LEAF = re.compile(r"([\[{])\n((?:[^\n]*[^\[{\n]\n)*?) *([\]}])")
"""A list or object that holds no other one on several lines; strings in JSON have no line ends."""
MAX_OBJECT_LINE = 400
"""Characters of an object that is written on one line."""


def write_atomically(
    path: Path, content: str | bytes | Callable[[BinaryIO], None], previous: Path | None = None
) -> None:
    """Write a temporary file beside `path`, then rename it to `path`.

    content: text, bytes, or a function that writes to the open file.
    previous: new name of the file that was at `path` before (default: it is replaced).

    After a kill, `path` has its old or its new content; with `previous`, one of the two names has.
    Each writer has its own temporary file, so threads, processes and containers may write to one
    path at the same time. Signals wait until the file is complete.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with deferred_signals():
            with open(temporary, "xb") as file:
                if callable(content):
                    content(file)
                else:
                    file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            if previous is not None and path.exists():
                os.replace(path, previous)
            os.replace(temporary, path)
            _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        reason = _system_reason(error)
        if reason is None:
            raise
        raise SteradError(
            f"cannot write {str(path)!r}: {reason}. The previous file is unchanged; free some "
            "space or choose another location, then run the same command again"
        ) from error


def create_folder(path: Path) -> None:
    """Create a folder and its parents, so that a power cut does not remove those that are new."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable: without it, a power cut may bring back the old name."""
    if os.name == "posix":  # other systems cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _system_reason(error: BaseException | None) -> str | None:
    # torch.save wraps the OSError of a failed write in a RuntimeError.
    while error is not None:
        if isinstance(error, OSError):
            return error.strerror or str(error)
        error = error.__cause__ or error.__context__
    return None


@contextlib.contextmanager
def deferred_signals() -> Iterator[None]:
    """Handle SIGTERM and SIGINT after the block: torch.save turns their exceptions into others."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread handles signals
        return
    received: list[tuple[int, FrameType | None]] = []

    def remember(number: int, frame: FrameType | None) -> None:
        received.append((number, frame))

    handlers = {
        number: signal.signal(number, remember)
        for number in (signal.SIGTERM, signal.SIGINT)
        if callable(signal.getsignal(number))  # not if the default action ends the process
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for received_number, frame in received[:1]:
            handler = handlers[signal.Signals(received_number)]
            assert callable(handler)
            handler(received_number, frame)


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files of killed writers; the caller must hold the lock of the folder."""
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def reading(source: object, remedy: str) -> Iterator[None]:
    """Turn whatever a parser raises into a sentence that names the file and the remedy.

    Parsers document no complete list of what they raise for damaged or hostile files. A SteradError
    that does not name the file gets its name.
    """
    try:
        yield
    except SteradError as error:
        if str(source) in str(error):
            raise
        raise SteradError(f"{str(source)!r} cannot be used, {error}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise SteradError(f"{str(source)!r} cannot be read ({reason}): {remedy}") from error
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        raise SteradError(
            f"{str(source)!r} is damaged or was written by something else ({reason}): {remedy}"
        ) from error


def read_regular(path: Path) -> bytes:
    """Return the content of a text file; refuse FIFOs and devices, whose reading may never end."""
    check_regular(path)
    if (size := path.stat().st_size) > MAX_TEXT_BYTES:
        raise OSError(errno.EFBIG, f"it has {size:,} bytes, more than {MAX_TEXT_BYTES:,}")
    return path.read_bytes()


def check_regular(path: Path) -> None:
    """Raise OSError for a FIFO, a socket or a device: opening it may wait without end."""
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # reading a folder raises by itself
        raise OSError(errno.EINVAL, "it is a FIFO, a socket or a device")


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError for numbers that overflow, NaN and more than 32 levels.

    The standard parser accepts them, and what is computed from them fails later.
    """
    content = json.loads(text, parse_constant=_refuse_constant)
    _check_json([content], MAX_JSON_LEVELS)
    return content


def join_short_lines(text: str) -> str:
    """Return indented JSON with each row of values, and each short object of these, on one line.

    >>> print(join_short_lines(json.dumps({"a": [1, 2], "b": [[3], [4]]}, indent=1)))
    {
     "a": [1, 2],
     "b": [
      [3],
      [4]
     ]
    }
    """
    rows = _LEAF.sub(_join_lines, text)
    return _LEAF.sub(lambda one: _join_lines(one) if one[1] == "{" else one[0], rows)


def _join_lines(block: re.Match[str]) -> str:
    content = " ".join(line.lstrip(" ") for line in block[2].rstrip("\n").split("\n"))
    is_short = block[1] == "[" or len(content) <= MAX_OBJECT_LINE
    return block[1] + content + block[3] if is_short else block[0]


def content_hash(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON values, whatever the layout of the file that has them.

    >>> content_hash({"a": 1, "b": [2.5]}) == content_hash({"b": (2.5,), "a": 1})
    True
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it contains {name}, which is not a finite number")


def _check_json(values: Collection[Any], levels: int) -> None:
    numbers = values
    if not {*map(type, values)} <= {int, float}:  # rows of numbers, most of a record, are faster
        numbers = [value for value in values if type(value) in (int, float)]
        for value in values:
            if isinstance(value, dict | list):
                if not levels:
                    raise ValueError(f"it has more than {MAX_JSON_LEVELS} levels")
                _check_json(value.values() if isinstance(value, dict) else value, levels - 1)
    for number in (min(numbers), max(numbers)) if numbers else ():
        if abs(number) >= (2**64 if isinstance(number, int) else math.inf):
            raise ValueError("it contains a number that is not finite or has more than 64 bits")
