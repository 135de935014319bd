"""glibc's allocator: keep freed memory for the next step instead of returning it to the system.

glibc returns blocks above a threshold to the system as soon as they are freed. A training step
frees and allocates the same large blocks again and again, and each time the system has to clear
their pages. Raising the thresholds avoids that; the bits of a result do not change. All threads
share one arena, because further arenas return memory whatever the thresholds are.
"""

import ctypes
import platform

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt, from malloc.h."""
MAX_MMAP_THRESHOLD = 32 << 20
"""Bytes; the largest value that glibc accepts, above the largest feature map of 74 images."""
TRIM_THRESHOLD = 1 << 30
"""Free bytes at the end of the heap that are kept."""


def keep_freed_memory() -> bool:
    """Raise the thresholds; return whether glibc accepted the settings."""
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    settings = (
        (M_ARENA_MAX, 1),
        (M_MMAP_THRESHOLD, MAX_MMAP_THRESHOLD),
        (M_TRIM_THRESHOLD, TRIM_THRESHOLD),
    )
    return all([libc.mallopt(name, value) for name, value in settings])
