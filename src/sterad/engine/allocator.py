"""The allocator: memory that a step frees is kept for the next one.

glibc hands blocks above a threshold back to the system as soon as they are freed, and a step of a
network frees and asks for the same large blocks again and again: each time the system has to clear
their pages. Told to keep them, it does not; the bits of a result do not change. Threads share one
heap: those of their own are handed back whatever it is told, and keep more than they use.
"""

import ctypes
import platform

_TRIM, _MMAP, _HEAPS = -1, -3, -8
"""Names of the thresholds, and of the most heaps, in malloc.h."""
LARGEST = 32 << 20
"""The largest threshold that glibc takes, above the largest map of a batch of 74."""
KEPT = 1 << 30
"""Free bytes at the end of the heap that are not handed back."""


def keep_freed_memory() -> bool:
    """Ask for it; return whether the system's allocator is one that listens."""
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    wishes = ((_HEAPS, 1), (_MMAP, LARGEST), (_TRIM, KEPT))
    return all([libc.mallopt(name, value) for name, value in wishes])
