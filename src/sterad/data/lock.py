"""One process at a time: a lock that the system releases even after SIGKILL."""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sterad.errors import SteradError


@contextmanager
def locked(file: Path, doing: str, wait: bool = True) -> Iterator[None]:
    """Hold `file` while doing something; wait for another process, or refuse where it is busy.

    An OSError of a place that cannot be written passes to the caller.
    """
    with open(file, "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not wait:
                raise SteradError(
                    f"another process is {doing}: wait for it, then run this again"
                ) from error
            print(f"sterad: waiting for another process that is {doing}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
