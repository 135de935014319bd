"""Freed memory is kept: counted by the pages that the system has to bring."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
import torch
from sterad.engine.execution import keep_freed_memory
assert keep_freed_memory()
torch.set_num_threads(1)
def once():
    # Together above what glibc keeps of its own accord, twice the largest block freed so far.
    blocks = [torch.zeros(24 << 20, dtype=torch.uint8) for _ in range(4)]
for _ in range(30):  # until the blocks have found their places
    once()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    once()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not glibc's")
def test_freed_blocks_bring_no_new_pages() -> None:
    # Handed back each time, they would bring 491,520 pages, or 960 of 2 MiB. Whether glibc's own
    # defaults hand them back hangs on what happens to lie behind them, so these are not compared.
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert int(found.stdout) < 100
