"""submitit's local executor for real, and what Slurm itself would be asked."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.experiments.launchers import LAUNCHERS, Job, Slurm

# submitit leaves the processes of its jobs to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@pytest.mark.slow
def test_a_preempted_and_a_killed_run_continue(trial: Any) -> None:
    jobs = trial.jobs(6, per_class=60)

    def disturb(job: Job, how: int) -> None:
        os.kill(trial.holder(job.out, job.id), how)

    signals = zip(jobs, (signal.SIGUSR2, signal.SIGKILL), strict=False)
    threads = [threading.Thread(target=disturb, args=pair) for pair in signals]
    for thread in threads:
        thread.start()
    outcomes = trial.launched(Slurm(workers=2, cluster="local"), jobs)
    for thread in threads:
        thread.join()
    assert [one.error for one in outcomes] == [None] * 6
    for job in jobs[:2]:
        assert "resume" in [one["event"] for one in trial.events[job.id]]
    for job in jobs:
        trial.check_equal(job)
        trial.check_told(job)


@pytest.mark.slow
def test_what_fails_is_told_and_what_dies_is_tried_again(trial: Any) -> None:
    plugin = trial.plugin("slurm-dies", "os._exit(3)")
    jobs = trial.jobs(2, method="slurm-dies", plugins=(plugin,))
    jobs += trial.jobs(1, lr=1e5)
    launcher = Slurm(workers=3, retries=1, cluster="local")
    good, dead, diverged = trial.launched(launcher, jobs)
    assert good.record is not None
    assert "without a record, 2 times" in dead.error
    assert "diverged" in diverged.error


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_an_array_with_all_that_was_asked(
    trial: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "srun": "exit 0",
        "sbatch": f'cp "$1" {tmp_path}/asked.sh; echo "Submitted batch job 12"',
        "sacct": "echo 'JobID|State'",
        "scancel": f'echo "$@" >> {tmp_path}/cancelled',
    }.items():
        script(tmp_path, name, text)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    values: dict[str, Any] = {"partition": "long", "account": "lab", "gpus": 1}

    def leave(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sterad.experiments.launchers.slurm.time.sleep", leave)
    with pytest.raises(KeyboardInterrupt):
        list(
            Slurm(workers=2, cpus=2, minutes=90, memory_gb=3, **values).launch(
                trial.jobs(3), trial.heard
            )
        )
    asked = (tmp_path / "asked.sh").read_text()
    for line in (
        "--array=0-2%2",
        "--partition=long",
        "--account=lab",
        "--time=90",
        "--mem=3GB",
        "--cpus-per-task=2",
        "--gpus-per-node=1",
        "--signal=USR2@",
    ):
        assert line in asked, line
    assert len((tmp_path / "cancelled").read_text().splitlines()) == 3


def test_a_machine_without_slurm(trial: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SteradError, match="Slurm is not to be had here"):
        list(Slurm().launch(trial.jobs(1), trial.heard))


def test_a_missing_library_is_a_sentence(trial: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(SteradError, match=r"pip install 'sterad\[slurm\]'"):
        list(Slurm().launch(trial.jobs(1), trial.heard))


def test_numbers_that_no_job_can_have() -> None:
    assert LAUNCHERS["slurm"] is Slurm
    for name, value, told in (
        ("workers", 0, "is out of range: give an integer from 1 to 1,000,000"),
        ("minutes", 0, "is out of range: give an integer from 1 to 1,000,000"),
        ("memory_gb", 0.0, "is out of range: give a number in (0, 1e+06]"),
        ("cpus", 0, "is out of range: give an integer from 1 to 4,096"),
        ("gpus", -1, "is out of range: give an integer from 0 to 4,096"),
        ("retries", -1, "is out of range: give an integer from 0 to 1,000"),
        ("cluster", "pbs", "is unknown: choose slurm or local"),
    ):
        values: dict[str, Any] = {name: value}
        with pytest.raises(SteradError) as refused:
            Slurm(**values)
        assert str(refused.value) == f"{name} {value!r} {told}"
