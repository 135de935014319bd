"""A short kill storm; `make storm` runs a long one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.storm.checks import find_event_problems

ROOT = Path(__file__).parents[2]
KILLS = 60


@pytest.mark.slow
def test_killed_runs_end_with_the_same_results(tmp_path: Path) -> None:
    """Ray, Slurm and a search are killed by `make storm` and by their own tests."""
    file = tmp_path / "storm.json"
    argv = ["--kills", str(KILLS), "--launchers", "study", "--json", str(file)]
    command = [sys.executable, "-m", "tests.storm", *argv]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(file.read_text())
    assert figures["kills"] == KILLS
    assert figures["problems"] == []
    assert figures["differing_bits"] == figures["lost_records"] == figures["tracebacks"] == 0


def test_the_checks_find_what_is_wrong() -> None:
    """The storm proves nothing if its checks accept everything."""
    start: dict[str, Any] = {"event": "start", "step": 0}
    end: dict[str, Any] = {"event": "end", "step": 2}
    steps: list[dict[str, Any]] = [
        {"event": "progress", "step": step, "loss": 1.0 / step} for step in (1, 2)
    ]
    good = [start, *steps, end]
    assert list(find_event_problems(good, good)) == []
    for bad in (
        [start, *steps],
        [start, *good],
        [*good, end],
        [start, steps[1], steps[0], end],
        [start, steps[0], end],
        [start, steps[0], steps[1] | {"loss": 0.7}, end],
    ):
        assert list(find_event_problems(bad, good)), bad
