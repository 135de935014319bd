"""A study that is told to end, or is killed, leaves no process behind, and is continued."""

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
method = "dozes"
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
DOZES = """
import time
from collections.abc import Callable
from pathlib import Path
from sterad.methods import METHODS
from sterad.methods.er import ER

@METHODS.register("dozes")
class Dozes(ER):
    "Falls asleep in its second task, for as long as there is a file that says so."

    def observe(self, batch):
        loss = super().observe(batch)
        while len(self.seen) > 2 and Path({asleep!r}).exists():
            Path({asleep!r}, str(self.problem.seed)).touch()
            time.sleep(0.1)
        return loss
"""
LONG = 300
"""Seconds that a busy machine may take for anything here."""


LOCAL: tuple[str, ...] = ("--launcher", "local")
RAY: tuple[str, ...] = ("--launcher", "ray", "--shared")


def study(folder: Path, launcher: tuple[str, ...]) -> subprocess.Popen[str]:
    """Start a study of two runs, in a group of processes of its own as a shell does."""
    # A shell lets jobs in its background ignore Ctrl-C, and their children with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    words = ["study", "dozes.toml", "--plugin", "dozes.py", "--threads", "1", "--workers", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "sterad.cli", *words, *launcher],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(what: str, found: Callable[[], bool]) -> None:
    until = time.monotonic() + LONG
    while not found():
        assert time.monotonic() < until, f"{what} took too long"
        time.sleep(0.05)


def free(place: RunDirectory) -> bool:
    try:
        with place.locked():
            return True
    except SteradError:
        return False


@pytest.mark.parametrize(
    ("number", "whom", "launcher"),
    [
        (signal.SIGTERM, os.kill, LOCAL),
        pytest.param(signal.SIGINT, os.killpg, LOCAL, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, os.kill, LOCAL, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, os.kill, LOCAL, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, os.kill, RAY, marks=pytest.mark.slow),
    ],
)
def test_the_workers_end_with_the_study(
    number: signal.Signals,
    whom: Callable[[int, int], None],
    launcher: tuple[str, ...],
    tmp_path: Path,
) -> None:
    asleep = tmp_path / "asleep"
    asleep.mkdir()
    (tmp_path / "dozes.toml").write_text(STUDY)
    (tmp_path / "dozes.py").write_text(DOZES.format(asleep=str(asleep)))
    with study(tmp_path, launcher) as first:
        wait_for("to fall asleep", lambda: len(list(asleep.iterdir())) == 2)
        whom(first.pid, number)
        _, said = first.communicate(timeout=LONG)
    places = [RunDirectory(file.parent, file.name) for file in (tmp_path / "runs").iterdir()]
    assert len(places) == 2
    if number is signal.SIGKILL:
        assert first.returncode == -number
        wait_for("the end of the workers", lambda: all(map(free, places)))
    else:
        assert first.returncode == 128 + number
        assert said.splitlines()[-1].startswith(f"sterad: interrupted by {number.name}; what is")
        assert "Traceback" not in said
        assert all(map(free, places)), "nobody is at work any more"
    assert all(place.checkpoint.exists() for place in places)
    assert not [file for place in places for file in place.path.glob("traceback.txt")]
    shutil.rmtree(asleep)
    with study(tmp_path, LOCAL) as second:
        _, said = second.communicate(timeout=LONG)
    assert second.returncode == 0, said
    for place in places:
        kinds = [json.loads(line)["event"] for line in place.events.read_text().splitlines()]
        assert kinds[0] == "start"
        assert "resume" in kinds
        assert kinds[-1] == "end"
        assert place.record.exists()
