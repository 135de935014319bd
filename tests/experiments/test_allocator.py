"""Freed memory is kept: counted by the pages that the system has to bring."""

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
from sterad.bench.subject import Scene
from sterad.experiments.execution import Execution
scene = Scene(image_size=16)
learner = scene.learner("er", Execution(threads=1, keeps_memory=sys.argv[1] == "keep"))
step = scene.act(learner)
for _ in range(2):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    command = [sys.executable, "-c", SCRIPT, how]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not glibc's")
def test_the_blocks_of_a_step_bring_fewer_new_pages() -> None:
    assert faults("keep") < 0.5 * faults("leave")
