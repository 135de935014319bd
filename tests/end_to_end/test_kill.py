"""Processes killed with SIGKILL at random times and resumed end with the same results."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.run import run
from sterad.methods import METHODS, Replay
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory

VALUES = {
    "dataset": "synthetic",
    "classes": 4,
    "per_class": 150,
    "tasks": 2,
    "memory": 50,
    "memory_batch": 8,
    "width": 2,
}
MAX_WAIT_S = 0.25
"""Enough for many steps and checkpoints of this small run."""


def values_of(method: str, stream: str, teacher: str) -> dict[str, object]:
    """Return the values of a small run that uses all kinds of state."""
    values = dict(VALUES) if stream != "domain" else {k: VALUES[k] for k in VALUES if k != "tasks"}
    if not issubclass(METHODS[method], Replay):  # its steps are short
        del values["memory_batch"]
        values |= {"per_class": 500} | ({"projection": 50} if method == "randumb" else {})
    if METHODS[method].trains == "on-stream":
        values |= {"test_then_train": True}
    return values | ({} if teacher == "none" else {"teacher": teacher, "predict_with": "average"})


def config_of(method: str, stream: str, teacher: str = "none") -> RunConfig:
    return RunConfig.of(method=method, stream=stream, **values_of(method, stream, teacher))


def start(config: RunConfig, out: Path) -> subprocess.Popen[bytes]:
    """Start `sterad train` with a checkpoint after each step."""
    method = config.method
    teacher = getattr(method.fields, "teacher", "none")
    values = values_of(method.name, config.stream.name, teacher)
    flat = [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in values.items()
    ]
    words = [method.name, "--stream", config.stream.name, *flat]
    place = ["--out", str(out), "--checkpoint-every", "1", "--threads", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "sterad.cli", "train", *words, *place],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def wait_for_event(process: subprocess.Popen[bytes], place: RunDirectory, size: int) -> None:
    """Wait for the process to write an event beyond the first `size` bytes, or to end."""
    while process.poll() is None:
        if place.events.exists() and place.events.stat().st_size > size:
            return
        time.sleep(0.002)


def kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill a process; return whether it was still running."""
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def finish(config: RunConfig, out: Path) -> RunRecord:
    process = start(config, out)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    record = RunDirectory(out, config.id).read_record()
    assert record is not None
    return record


def run_with_kills(config: RunConfig, out: Path, kills: int, seed: int) -> RunRecord:
    rng, place, done = random.Random(seed), RunDirectory(out, config.id), 0
    for _ in range(20 * kills):
        if done == kills:
            break
        size = place.events.stat().st_size if place.events.exists() else 0
        process = start(config, out)
        wait_for_event(process, place, size)
        time.sleep(rng.uniform(0, MAX_WAIT_S))
        if place.record.exists():
            process.communicate()
            pytest.fail(f"the run ended after {done} of {kills} kills: make it longer")
        done += kill(process)
    assert done == kills
    return finish(config, out)


def run_uninterrupted(config: RunConfig, out: Path) -> RunRecord:
    return run(config, out, Execution(threads=1), checkpoint_every=1000)


def check_resumption(
    method: str, stream: str, kills: int, tmp_path: Path, teacher: str = "none"
) -> None:
    config = config_of(method, stream, teacher)
    expected = run_uninterrupted(config, tmp_path / "uninterrupted")
    resumed = run_with_kills(config, tmp_path / "killed", kills, seed=len(method + stream))
    assert resumed.metrics() == expected.metrics()
    assert resumed.execution == expected.execution


@pytest.mark.slow
@pytest.mark.parametrize(("method", "stream", "kills"), [("agd-fd", "blurry", 2)])
def test_kills_at_random_times(method: str, stream: str, kills: int, tmp_path: Path) -> None:
    check_resumption(method, stream, kills, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["agd-fd", "er"])
def test_kills_with_images_of_32_pixels(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At this size the memory format is channels-last, and bfloat16 is used if the CPU has it."""
    for name, value in {
        "image_size": 32,
        "width": 16,
        "per_class": 60,
        "test_per_class": 5,
    }.items():
        monkeypatch.setitem(VALUES, name, value)
    check_resumption(method, "clear", 2, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["clear", "blurry"])
@pytest.mark.parametrize("method", list(METHODS))
def test_kills_with_every_method(method: str, stream: str, tmp_path: Path) -> None:
    check_resumption(method, stream, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["agd-fd", "er", "scr", "ocm"])
def test_kills_with_a_teacher(method: str, tmp_path: Path) -> None:
    check_resumption(method, "blurry", 1, tmp_path, teacher="ema")


@pytest.mark.slow
@pytest.mark.parametrize(
    "stream", ["iid", "linear", "i-blurry", "si-blurry", "domain", "long-tail"]
)
def test_kills_with_every_stream(stream: str, tmp_path: Path) -> None:
    check_resumption("agd-fd", stream, 1, tmp_path)


@pytest.mark.slow
def test_kills_while_a_checkpoint_is_written(tmp_path: Path) -> None:
    config, caught = config_of("vmf-fd", "clear"), 0
    place = RunDirectory(tmp_path / "killed", config.id)
    for _ in range(30):
        process = start(config, tmp_path / "killed")
        while process.poll() is None and not list(place.path.glob(".checkpoint.pt.*.tmp")):
            pass
        kill(process)
        caught += bool(list(place.path.glob(".checkpoint.pt.*.tmp")))
        if caught == 2 or place.record.exists():
            break
    assert caught == 2, "no kill happened during a write: the test proves nothing"
    resumed = finish(config, tmp_path / "killed")
    assert resumed.metrics() == run_uninterrupted(config, tmp_path / "uninterrupted").metrics()
    assert not list(place.path.glob(".*.tmp")), "temporary files of killed processes are removed"
