"""A study that is interrupted or killed leaves no process behind and can be continued."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.results.run_directory import RunDirectory

STUDY = """
[fixed]
method = "pausing"
dataset = "synthetic"
classes = 4
per_class = 8
test_per_class = 2
tasks = 2
memory = 4
memory_batch = 2
width = 2
anytime = 2
[axes]
seed = [0, 1]
"""
PAUSING_METHOD = """
import time
from collections.abc import Callable
from pathlib import Path
from sterad.methods import METHODS
from sterad.methods.er import ER

@METHODS.register("pausing")
class Pausing(ER):
    "Pauses in its second task while a folder exists."

    def observe(self, batch):
        loss = super().observe(batch)
        while len(self.seen) > 2 and Path({pause!r}).exists():
            Path({pause!r}, str(self.problem.seed)).touch()
            time.sleep(0.1)
        return loss
"""
TIMEOUT_S = 300
"""Enough for each part of the test on a busy machine."""
LOCAL: tuple[str, ...] = ("--launcher", "local")
RAY: tuple[str, ...] = ("--launcher", "ray", "--shared")


def start_study(folder: Path, launcher: tuple[str, ...]) -> subprocess.Popen[str]:
    """Start a study of two runs in its own process group, as a shell does."""
    # Background jobs of a shell ignore SIGINT, and so would their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    words = ["study", "pausing.toml", "--plugin", "pausing.py", "--threads", "1", "--workers", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "sterad.cli", *words, *launcher],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(what: str, found: Callable[[], bool]) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not found():
        assert time.monotonic() < until, f"{what} took too long"
        time.sleep(0.05)


def is_unlocked(place: RunDirectory) -> bool:
    try:
        with place.locked():
            return True
    except SteradError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "send_signal", "launcher"),
    [
        (signal.SIGTERM, os.kill, LOCAL),
        pytest.param(signal.SIGINT, os.killpg, LOCAL, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, os.kill, LOCAL, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, os.kill, LOCAL, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, os.kill, RAY, marks=pytest.mark.slow),
    ],
)
def test_workers_end_with_the_study(
    number: signal.Signals,
    send_signal: Callable[[int, int], None],
    launcher: tuple[str, ...],
    tmp_path: Path,
) -> None:
    pause = tmp_path / "pause"
    pause.mkdir()
    (tmp_path / "pausing.toml").write_text(STUDY)
    (tmp_path / "pausing.py").write_text(PAUSING_METHOD.format(pause=str(pause)))
    with start_study(tmp_path, launcher) as first:
        wait_for("the pause", lambda: len(list(pause.iterdir())) == 2)
        send_signal(first.pid, number)
        _, errors = first.communicate(timeout=TIMEOUT_S)
    places = [RunDirectory(file.parent, file.name) for file in (tmp_path / "runs").iterdir()]
    assert len(places) == 2
    if number is signal.SIGKILL:
        assert first.returncode == -number
        wait_for("the end of the workers", lambda: all(map(is_unlocked, places)))
    else:
        assert first.returncode == 128 + number
        assert errors.splitlines()[-1].startswith(f"sterad: interrupted by {number.name}; finished")
        assert "Traceback" not in errors
        assert all(map(is_unlocked, places)), "all workers have ended"
    assert all(place.checkpoint.exists() for place in places)
    assert not [file for place in places for file in place.path.glob("traceback.txt")]
    shutil.rmtree(pause)
    with start_study(tmp_path, LOCAL) as second:
        _, errors = second.communicate(timeout=TIMEOUT_S)
    assert second.returncode == 0, errors
    for place in places:
        kinds = [json.loads(line)["event"] for line in place.events.read_text().splitlines()]
        assert kinds[0] == "start"
        assert "resume" in kinds
        assert kinds[-1] == "end"
        assert place.record.exists()
