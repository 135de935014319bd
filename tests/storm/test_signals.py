"""SIGTERM while a checkpoint is being written: a sentence, exit code 143, and the same results."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.storm.checks import Tally, check_finished, run_directories

PLUGIN = """
import os, signal, time
from pathlib import Path
import torch

save, folder = torch.save, Path({folder!r})

class Interrupted:
    "A file that sends SIGTERM to this process, or waits, in the middle of a write."

    def __init__(self, file):
        self.file = file

    def write(self, data):
        size = self.file.write(data)
        if (folder / "send").exists():
            (folder / "send").unlink()
            os.kill(os.getpid(), signal.SIGTERM)
        while (folder / "pause").exists():
            (folder / "inside").touch()
            time.sleep(0.02)
        return size

    def flush(self):
        self.file.flush()

torch.save = lambda content, file: save(content, Interrupted(file))
"""
VALUES = """
dataset = "synthetic"
classes = 4
per_class = 20
test_per_class = 2
tasks = 2
memory = 10
memory_batch = 4
width = 2
encoder = "mlp"
anytime = 2
"""
STUDY = f'[fixed]{VALUES}method = "er"\n[axes]\nseed = [0]\n'
TRAIN = ["train", "er", "--config", "values.toml", "--checkpoint-every", "2"]
LOCAL = ["study", "study.toml", "--launcher", "local"]
RAY = ["study", "study.toml", "--launcher", "ray", "--workers", "1"]
TIMEOUT_S = 1800


class Command:
    """A command of sterad in a folder with a study, and with the plugin that interrupts writes."""

    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder, self.argv = folder, [*argv, "--threads", "1"]
        (folder / "values.toml").write_text(VALUES)
        (folder / "study.toml").write_text(STUDY)
        (folder / "plugin.py").write_text(PLUGIN.format(folder=str(folder)))

    def start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sterad.cli", *self.argv, *options],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str) -> tuple[int, str]:
        """Return the exit code and what was printed to standard error."""
        with self.start(*options) as process:
            _, errors = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, errors

    def check_results(self) -> None:
        """Check that the run in `runs` is finished and equals one that was not interrupted."""
        self.argv = [*(LOCAL if self.argv[0] == "study" else TRAIN), "--threads", "1"]
        assert self.run("--out", "reference")[0] == 0
        tally, folders = Tally(), (self.folder / "runs", self.folder / "reference")
        (killed,), (reference,) = map(run_directories, folders)
        check_finished(killed, reference, "interrupted in torch.save", tally)
        assert tally.problems == []


def check_interrupted(code: int, errors: str) -> None:
    assert code == 128 + signal.SIGTERM, errors
    assert errors.splitlines()[-1].startswith("sterad: interrupted by SIGTERM; finished work is")
    assert "Traceback" not in errors


@pytest.mark.slow
def test_a_run_that_is_interrupted_in_torch_save(tmp_path: Path) -> None:
    command = Command(tmp_path, TRAIN)
    (tmp_path / "send").touch()
    check_interrupted(*command.run("--plugin", "plugin.py"))
    (directory,) = run_directories(tmp_path / "runs")
    assert directory.checkpoint.exists(), "the checkpoint is completed first"
    assert not list(directory.path.glob(".*.tmp"))
    code, errors = command.run()
    assert code == 0
    assert "continues from step 2" in errors
    command.check_results()


@pytest.mark.slow
@pytest.mark.parametrize("argv", [TRAIN, LOCAL, RAY, [*RAY, "--shared"]])
def test_a_command_that_is_interrupted_while_its_run_is_in_torch_save(
    argv: list[str], tmp_path: Path
) -> None:
    command = Command(tmp_path, argv)
    (tmp_path / "pause").touch()
    with command.start("--plugin", "plugin.py") as process:
        deadline = time.monotonic() + TIMEOUT_S
        while not (tmp_path / "inside").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        if argv == TRAIN:  # it completes its checkpoint; a study ends its workers
            (tmp_path / "pause").unlink()
        _, errors = process.communicate(timeout=TIMEOUT_S)
    check_interrupted(process.returncode, errors)
    (tmp_path / "pause").unlink(missing_ok=True)
    assert command.run()[0] == 0
    command.check_results()


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--shared"]])
def test_a_ray_worker_that_is_interrupted_in_torch_save_is_retried(
    options: list[str], tmp_path: Path
) -> None:
    command = Command(tmp_path, [*RAY, *options])
    (tmp_path / "send").touch()
    code, errors = command.run("--plugin", "plugin.py")
    assert code == 0, errors
    assert not (tmp_path / "send").exists()
    command.check_results()


def test_a_command_that_is_interrupted_in_an_import(tmp_path: Path) -> None:
    """CPython remembers that exec() was interrupted, and would end by SIGINT."""
    (tmp_path / "plugin.py").write_text(
        'exec("import os, signal; os.kill(os.getpid(), signal.SIGTERM); [0 for _ in range(999)]")'
    )
    command = [sys.executable, "-m", "sterad.cli", "train", "er", "--plugin", "plugin.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    check_interrupted(done.returncode, done.stderr)
