"""Files that are there whole or not at all."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sterad.errors import SteradError


def write_atomically(path: Path, content: str | bytes | Callable[[BinaryIO], None]) -> None:
    """Write a file beside `path` and rename it there, so that a kill leaves the old or the new one.

    content: text, bytes, or a function that writes to the open file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        reason = _system_reason(error)
        if reason is None:
            raise
        raise SteradError(
            f"cannot write {str(path)!r}: {reason}. What was there before is untouched; "
            "make room or choose another place, and run the same command again"
        ) from error


def _system_reason(error: BaseException | None) -> str | None:
    # torch.save wraps a failed write in a RuntimeError of its own; the cause stands behind it.
    while error is not None:
        if isinstance(error, OSError):
            return error.strerror or str(error)
        error = error.__cause__ or error.__context__
    return None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process holds a folder, and hold it; a kill releases it."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of writers that were killed; call it only while holding a lock."""
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
