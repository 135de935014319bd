"""The allocator: memory that a step frees is kept for the next one.

glibc hands blocks above a threshold back to the system as soon as they are freed, and a step of a
network frees and asks for the same large blocks again and again: each time the system has to clear
their pages. Told to keep them, it does not; the bits of a result do not change.
"""

import ctypes
import platform

_TRIM, _MMAP = -1, -3
"""Names of the thresholds in malloc.h."""
LARGEST = 32 << 20
"""The largest threshold that glibc takes, above the largest map of a batch of 74."""
KEPT = 1 << 30
"""Free bytes at the end of the heap that are not handed back."""


def keep_freed_memory() -> bool:
    """Ask for it; return whether the system's allocator is one that listens."""
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(_MMAP, LARGEST) and libc.mallopt(_TRIM, KEPT))
