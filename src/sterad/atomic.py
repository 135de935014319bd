"""Atomic writes: after a kill or a full disk, a file has its old or its new content."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from sterad.errors import SteradError


def write_atomically(path: Path, content: str | bytes | Callable[[BinaryIO], None]) -> None:
    """Write a temporary file beside `path`, then rename it to `path`.

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
            f"cannot write {str(path)!r}: {reason}. The previous file is unchanged; free some "
            "space or choose another location, then run the same command again"
        ) from error


def _system_reason(error: BaseException | None) -> str | None:
    # torch.save wraps the OSError of a failed write in a RuntimeError.
    while error is not None:
        if isinstance(error, OSError):
            return error.strerror or str(error)
        error = error.__cause__ or error.__context__
    return None


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files of killed writers; the caller must hold the lock of the folder."""
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
