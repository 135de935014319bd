"""Real runs with submitit's local executor, and the sbatch script of a Slurm array."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.experiments.launchers import LAUNCHERS, Job, Slurm

# submitit does not wait for the processes of its jobs.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@pytest.mark.slow
def test_preempted_and_killed_runs_are_resumed(lab: Any) -> None:
    jobs = lab.create_jobs(6, per_class=60)

    def send_signal(job: Job, number: int) -> None:
        os.kill(lab.wait_for_process(job.out, job.id), number)

    signals = zip(jobs, (signal.SIGUSR2, signal.SIGKILL), strict=False)
    threads = [threading.Thread(target=send_signal, args=pair) for pair in signals]
    for thread in threads:
        thread.start()
    outcomes = lab.launch(Slurm(workers=2, cluster="local"), jobs)
    for thread in threads:
        thread.join()
    assert [outcome.error for outcome in outcomes] == [None] * 6
    for job in jobs[:2]:
        assert "resume" in [event["event"] for event in lab.events[job.id]]
    for job in jobs:
        lab.check_equal(job)
        lab.check_events(job)


@pytest.mark.slow
def test_errors_are_reported_and_dead_jobs_are_retried(lab: Any) -> None:
    plugin = lab.write_plugin("slurm-dies", "os._exit(3)")
    jobs = lab.create_jobs(2, method="slurm-dies", plugins=(plugin,))
    jobs += lab.create_jobs(1, lr=1e5)
    launcher = Slurm(workers=3, retries=1, cluster="local")
    good, dead, diverged = lab.launch(launcher, jobs)
    assert good.record is not None
    assert "without a record, 2 times" in dead.error
    assert "diverged" in diverged.error


def write_script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_options_are_passed_to_sbatch(
    lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "srun": "exit 0",
        "sbatch": f'cp "$1" {tmp_path}/sbatch.sh; echo "Submitted batch job 12"',
        "sacct": "echo 'JobID|State'",
        "scancel": f'echo "$@" >> {tmp_path}/cancelled',
    }.items():
        write_script(tmp_path, name, text)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    values: dict[str, Any] = {"partition": "long", "account": "lab", "gpus": 1}

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sterad.experiments.launchers.slurm.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(
            Slurm(workers=2, cpus=2, minutes=90, memory_gb=3, **values).launch(
                lab.create_jobs(3), lab.on_event
            )
        )
    script = (tmp_path / "sbatch.sh").read_text()
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
        assert line in script, line
    assert len((tmp_path / "cancelled").read_text().splitlines()) == 3


def test_a_machine_without_slurm_is_an_error(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SteradError, match="Slurm is not available here"):
        list(Slurm().launch(lab.create_jobs(1), lab.on_event))


def test_a_missing_library_is_an_error(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(SteradError, match=r"pip install 'sterad\[slurm\]'"):
        list(Slurm().launch(lab.create_jobs(1), lab.on_event))


def test_values_out_of_range_are_refused() -> None:
    assert LAUNCHERS["slurm"] is Slurm
    for name, value, error in (
        ("workers", 0, "is out of range: give an integer from 1 to 1,000,000"),
        ("minutes", 0, "is out of range: give an integer from 1 to 1,000,000"),
        ("memory_gb", 0.0, "is out of range: give a number in (0, 1e+06]"),
        ("cpus", 0, "is out of range: give an integer from 1 to 4,096"),
        ("gpus", -1, "is out of range: give an integer from 0 to 4,096"),
        ("retries", -1, "is out of range: give an integer from 0 to 1,000"),
        ("cluster", "pbs", "is unknown: choose slurm or local"),
    ):
        values: dict[str, Any] = {name: value}
        with pytest.raises(SteradError) as caught:
            Slurm(**values)
        assert str(caught.value) == f"{name} {value!r} {error}"
