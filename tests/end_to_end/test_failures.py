"""Invalid values, damaged files and full disks: one error message, exit code 2, no data lost."""

import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sterad.cli import main
from sterad.experiments.checkpoint import save_checkpoint, save_hashed

SMALL = [
    *("--dataset", "synthetic", "--classes", "4", "--per-class", "12", "--tasks", "2"),
    *("--memory", "10", "--width", "2", "--threads", "1", "--views", "1", "--projection", "16"),
]
TRAIN = ["train", "agd-fd", *SMALL]


@pytest.fixture
def error_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command, checks that it fails, and returns the message."""

    def run(*argv: str) -> str:
        capsys.readouterr()
        assert main(argv) == 2
        errors = capsys.readouterr().err
        assert "Traceback" not in errors
        return errors.splitlines()[-1]

    return run


def interrupted_run(out: Path) -> Path:
    """Return the directory of a run with a checkpoint and without a record."""
    assert main([*TRAIN, "--out", str(out), "--checkpoint-every", "1"]) == 0
    (folder,) = out.iterdir()
    (folder / "record.json").unlink()
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "lock"}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--memory", "0"], "memory 0 stores no samples"),
        (
            ["--memory", "-3"],
            "sterad: --memory -3 is out of range: give an integer from 0 to 1,000,000,000",
        ),
        (["--tasks", "3"], "4 classes cannot make 3 tasks"),
        (["--encoder", "resnet"], "unknown encoder 'resnet'"),
        (["--stream", "clera"], "did you mean 'clear'"),
        (["--dataset", "sinthetic"], "did you mean 'synthetic'"),
        (["--anytime", "0"], "--anytime 0 is out of range: give an integer from 1 to 1,000,000"),
        (["--seed", "-1"], "--seed -1 is out of range: give an integer from 0 to 4,294,967,295"),
        (["--batch-size", "0"], "--batch-size 0 is out of range: give an integer from 1 to 100,0"),
        (["--checkpoint-every", "0"], "--checkpoint-every 0 is out of range: give an integer from"),
        (["--image-size", "4"], "8"),
        (["--channels", "2"], "2"),
        (["--channels", "0"], "--channels 0 is out of range: give an integer from 1 to 64"),
        (["--width", "0"], "--width 0 is out of range: give an integer from 1 to 4,096"),
        (["--variance", "nan"], "--variance nan is out of range: give a number in (0, 1e+06]"),
        (["--threads", "0"], "--threads 0 is out of range: give an integer from 1 to 4,096"),
        (["--threads", "4096"], "threads 4096 is more than the "),
        (["--device", "warp"], "device 'warp' is not available here ("),
        (["--head", "none", "--width", "1", "--classes", "20", "--tasks", "2"], "20"),
        (["--lr", "1e30"], "--lr 1e+30 is out of range: give a number in (0, 1e+06]"),
        (["--lr", "1e5"], "diverged"),
        (["--lr", "1e6", "--optimizer", "sgd", "--weight-decay", "1e6"], "diverged"),
    ],
)
def test_invalid_values_are_refused(
    argv: list[str], expected: str, error_of: Callable[..., str], tmp_path: Path
) -> None:
    message = error_of(*TRAIN, *argv, "--out", str(tmp_path / "runs"))
    assert expected in message


def test_an_invalid_config_creates_no_directory(
    error_of: Callable[..., str], tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path / "runs"))
    expected = "--variance -1.0 is out of range: give a number in (0, 1e+06]"
    assert expected in error_of(*TRAIN, "--variance", "-1", *out)
    assert "is more than the" in error_of(*TRAIN, "--threads", "4096", *out)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("keep", [0, 1, 1000, -1])
def test_a_truncated_checkpoint_is_refused(
    keep: int, error_of: Callable[..., str], tmp_path: Path
) -> None:
    folder = interrupted_run(tmp_path)
    file = folder / "checkpoint.pt"
    file.write_bytes(file.read_bytes()[:keep])
    before = read_files(folder)
    message = error_of(*TRAIN, "--out", str(tmp_path))
    assert "checkpoint.pt" in message
    assert "delete" in message
    assert read_files(folder) == before
    file.unlink()
    assert main([*TRAIN, "--out", str(tmp_path)]) == 0, (
        "deleting the checkpoint helps, as the message says"
    )


def test_a_checkpoint_of_another_run_is_refused(
    error_of: Callable[..., str], tmp_path: Path
) -> None:
    file = interrupted_run(tmp_path) / "checkpoint.pt"
    save_checkpoint(file, "another-run", {})
    assert "belongs to 'another-run'" in error_of(*TRAIN, "--out", str(tmp_path))
    save_hashed(file, {"weights": torch.zeros(2)})
    assert "is not a checkpoint of sterad" in error_of(*TRAIN, "--out", str(tmp_path))
    save_hashed(file, {"format": "sterad checkpoint", "schema": 99, "owner": "", "state": {}})
    assert "schema 99" in error_of(*TRAIN, "--out", str(tmp_path))


class Bomb:
    """Creates a folder when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize(
    "writer", [torch.save, lambda bomb, file: file.write_bytes(pickle.dumps(bomb))]
)
def test_a_checkpoint_that_would_run_code_is_refused(
    writer: Callable[..., object], error_of: Callable[..., str], tmp_path: Path
) -> None:
    file = interrupted_run(tmp_path / "runs") / "checkpoint.pt"
    writer(Bomb(tmp_path / "exploded"), file)
    assert "checkpoint.pt" in error_of(*TRAIN, "--out", str(tmp_path / "runs"))
    assert not (tmp_path / "exploded").exists()


def test_a_damaged_record_is_refused(error_of: Callable[..., str], tmp_path: Path) -> None:
    assert main([*TRAIN, "--out", str(tmp_path)]) == 0
    (record,) = tmp_path.glob("*/record.json")
    record.write_text(record.read_text()[:100])
    assert "record.json" in error_of(*TRAIN, "--out", str(tmp_path))


@pytest.mark.slow
def test_a_run_that_another_process_is_writing_is_refused(
    error_of: Callable[..., str], tmp_path: Path
) -> None:
    long = [*TRAIN, "--per-class", "3000", "--out", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "sterad.cli", *long],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as other:
        try:
            while not list(tmp_path.glob("*/events.jsonl")):
                assert other.poll() is None
                time.sleep(0.01)
            message = error_of(*long)
            assert str(other.pid) in message
            assert "wait" in message
        finally:
            other.kill()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["config", pytest.param("checkpoint", marks=pytest.mark.slow)])
def test_a_file_size_limit_loses_no_data(step: str, tmp_path: Path) -> None:
    """A limit on file sizes makes writes fail on every system."""
    folder = interrupted_run(tmp_path)
    if step == "config":
        shutil.rmtree(folder)
    limit = 10 if step == "config" else 3000
    before = read_files(folder) if folder.exists() else {}
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from sterad.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    argv = [*TRAIN, "--out", str(tmp_path), "--checkpoint-every", "1"]
    # Without the final checkpoint, the run starts again and has to write one.
    if step == "checkpoint":
        (folder / "checkpoint.pt").unlink()
        before.pop("checkpoint.pt")
    result = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True)
    assert result.returncode == 2, result.stderr
    assert "cannot write" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "record.json").exists()
    if step == "checkpoint":
        assert (folder / "config.json").read_bytes() == before["config.json"]
    assert main(argv) == 0, "without the limit the same command finishes"


@pytest.mark.slow
def test_a_full_disk_loses_no_data(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("the test needs root to mount a tmpfs of 64 kB")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)])
    if mounted.returncode:
        pytest.skip("this system does not allow mounting a tmpfs")
    try:
        argv = [*TRAIN, "--out", str(disk), "--checkpoint-every", "1"]
        code = "import sys; from sterad.cli import main; sys.exit(main(sys.argv[1:]))"
        result = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True)
        assert result.returncode == 2, result.stderr
        assert "No space left on device" in result.stderr
        assert "Traceback" not in result.stderr
        assert not list(disk.glob("*/.*.tmp")), "a failed write leaves no temporary file"
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        assert main(argv) == 0, "without the limit the same command finishes"
    finally:
        subprocess.run(["umount", str(disk)], check=True)
