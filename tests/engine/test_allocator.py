"""glibc keeps freed memory for reuse; measured by page faults."""

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
def allocate():
    # Together more than glibc keeps by default: twice the largest block freed so far.
    blocks = [torch.zeros(24 << 20, dtype=torch.uint8) for _ in range(4)]
for _ in range(30):  # until every block reuses the same pages
    allocate()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    allocate()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_reused_blocks_cause_no_page_faults() -> None:
    # Returned to the system each time, the blocks would cause 491,520 faults, or 960 with pages of
    # 2 MiB. What glibc returns by default depends on the layout of the heap: it is not compared.
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert int(process.stdout) < 100
