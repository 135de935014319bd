"""Memory stays flat over 200,000 samples; `make soak` learns from ten million."""

from pathlib import Path

import pytest

from tests.storm.soak import CLASSES, MAX_GROWTH, PARTS, run_part

SAMPLES = 200_000


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="resident size is read from /proc"
)
@pytest.mark.parametrize("part", PARTS)
def test_memory_is_flat(part: str) -> None:
    figures = run_part(part, SAMPLES)
    assert figures["samples"] == SAMPLES
    assert figures["classes"] == CLASSES
    early, *_, last = figures["measurements"]
    assert last["mib"] / early["mib"] - 1 <= MAX_GROWTH, figures
