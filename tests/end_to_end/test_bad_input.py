"""What goes wrong is said in a sentence, exit code 2, and nothing already written is damaged."""

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
from sterad.experiments.checkpoint import save_checkpoint

SMALL = [
    *("--dataset", "synthetic", "--classes", "4", "--per-class", "12", "--tasks", "2"),
    *("--memory", "10", "--width", "2", "--threads", "1", "--views", "1", "--projection", "16"),
]
TRAIN = ["train", "agd-fd", *SMALL]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must be refused; return the sentence."""

    def run(*words: str) -> str:
        capsys.readouterr()
        assert main(words) == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said.splitlines()[-1]

    return run


def begun(out: Path) -> Path:
    """Return the directory of a run that was interrupted half-way: no record, a checkpoint."""
    assert main([*TRAIN, "--out", str(out), "--checkpoint-every", "1"]) == 0
    (folder,) = out.iterdir()
    (folder / "record.json").unlink()
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "lock"}


@pytest.mark.parametrize(
    ("words", "said"),
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
def test_values_that_no_run_can_have(
    words: list[str], said: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    sentence = refused(*TRAIN, *words, "--out", str(tmp_path / "runs"))
    assert said in sentence


def test_a_refused_config_leaves_no_directory(refused: Callable[..., str], tmp_path: Path) -> None:
    place = ("--out", str(tmp_path / "runs"))
    told = "--variance -1.0 is out of range: give a number in (0, 1e+06]"
    assert told in refused(*TRAIN, "--variance", "-1", *place)
    assert "is more than the" in refused(*TRAIN, "--threads", "4096", *place)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("keep", [0, 1, 1000, -1])
def test_a_truncated_checkpoint(keep: int, refused: Callable[..., str], tmp_path: Path) -> None:
    folder = begun(tmp_path)
    file = folder / "checkpoint.pt"
    file.write_bytes(file.read_bytes()[:keep])
    before = files(folder)
    sentence = refused(*TRAIN, "--out", str(tmp_path))
    assert "checkpoint.pt" in sentence
    assert "delete" in sentence
    assert files(folder) == before
    file.unlink()
    assert main([*TRAIN, "--out", str(tmp_path)]) == 0, "the remedy works"


def test_a_foreign_checkpoint(refused: Callable[..., str], tmp_path: Path) -> None:
    file = begun(tmp_path) / "checkpoint.pt"
    save_checkpoint(file, "another-run", {})
    assert "belongs to 'another-run'" in refused(*TRAIN, "--out", str(tmp_path))
    torch.save({"weights": torch.zeros(2)}, file)
    assert "is not a checkpoint of sterad" in refused(*TRAIN, "--out", str(tmp_path))
    torch.save({"format": "sterad checkpoint", "schema": 99, "owner": "", "state": {}}, file)
    assert "schema 99" in refused(*TRAIN, "--out", str(tmp_path))


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize(
    "writer", [torch.save, lambda bomb, file: file.write_bytes(pickle.dumps(bomb))]
)
def test_a_checkpoint_that_would_run_code_is_refused(
    writer: Callable[..., object], refused: Callable[..., str], tmp_path: Path
) -> None:
    file = begun(tmp_path / "runs") / "checkpoint.pt"
    writer(Bomb(tmp_path / "exploded"), file)
    assert "checkpoint.pt" in refused(*TRAIN, "--out", str(tmp_path / "runs"))
    assert not (tmp_path / "exploded").exists()


def test_a_damaged_record(refused: Callable[..., str], tmp_path: Path) -> None:
    assert main([*TRAIN, "--out", str(tmp_path)]) == 0
    (record,) = tmp_path.glob("*/record.json")
    record.write_text(record.read_text()[:100])
    assert "record.json" in refused(*TRAIN, "--out", str(tmp_path))


def test_a_directory_that_another_process_is_writing(
    refused: Callable[..., str], tmp_path: Path
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
            sentence = refused(*long)
            assert str(other.pid) in sentence
            assert "wait" in sentence
        finally:
            other.kill()


@pytest.mark.parametrize("step", ["config", pytest.param("checkpoint", marks=pytest.mark.slow)])
def test_files_that_may_not_grow(step: str, tmp_path: Path) -> None:
    """A limit on file sizes fails writes for real, wherever the tests run."""
    folder = begun(tmp_path)
    if step == "config":
        shutil.rmtree(folder)
    limit = 10 if step == "config" else 3000
    before = files(folder) if folder.exists() else {}
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from sterad.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [*TRAIN, "--out", str(tmp_path), "--checkpoint-every", "1"]
    # The finished checkpoint is set back, so that there is something left to learn and to write.
    if step == "checkpoint":
        (folder / "checkpoint.pt").unlink()
        before.pop("checkpoint.pt")
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "record.json").exists()
    if step == "checkpoint":
        assert (folder / "config.json").read_bytes() == before["config.json"]
    assert main(words) == 0, "with room again the same command finishes"


def test_no_space_left_on_the_device(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("a full disk is a tmpfs of 64 kB, which only root can mount")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)])
    if mounted.returncode:
        pytest.skip("this system lets not even root mount a tmpfs")
    try:
        words = [*TRAIN, "--out", str(disk), "--checkpoint-every", "1"]
        code = "import sys; from sterad.cli import main; sys.exit(main(sys.argv[1:]))"
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        assert not list(disk.glob("*/.*.tmp")), "a write that failed leaves nothing behind"
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        assert main(words) == 0, "with room again the same command finishes"
    finally:
        subprocess.run(["umount", str(disk)], check=True)
