"""Real processes on this machine: crashes, kills, broken plugins, and interruption."""

import dataclasses
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.experiments.launchers import LAUNCHERS, Job, Local
from sterad.threads import cores


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_killed_run_fails_alone_and_can_be_resumed(lab: Any) -> None:
    jobs = lab.create_jobs(3, per_class=40)
    killer = threading.Thread(
        target=lambda: os.kill(lab.wait_for_process(jobs[0].out, jobs[0].id), signal.SIGKILL)
    )
    killer.start()
    killed, *others = lab.launch(Local(2), jobs)
    killer.join()
    assert "signal SIGKILL" in killed.error
    assert "continues" in killed.error
    assert killed.record is None
    assert all(other.record is not None and other.error is None for other in others)
    (again,) = lab.launch(Local(2), [jobs[0]])
    assert again.record is not None
    assert "resume" in [event["event"] for event in lab.events[jobs[0].id]]
    lab.check_events(jobs[2])
    lab.check_equal(jobs[0])
    lab.check_equal(jobs[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "statement", "error"),
    [
        ("raises", "raise ValueError('no such luck')", "ValueError: no such luck; see"),
        ("leaves", "os._exit(3)", "exit code 3"),
        pytest.param(
            "prints",
            "print('x' * 100_000); raise KeyError('gone')",
            "KeyError: 'gone'",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "full",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))",
            "File too large",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_broken_run_does_not_affect_others(
    name: str, statement: str, error: str, lab: Any
) -> None:
    jobs = lab.create_jobs(2, method=name, plugins=(lab.write_plugin(name, statement),))
    good, bad = lab.launch(Local(2), jobs)
    assert good.record is not None
    assert bad.record is None
    assert error in bad.error
    assert (jobs[1].directory.path / "traceback.txt").exists() == (name in ("raises", "prints"))


def test_a_missing_plugin_is_an_error(lab: Any) -> None:
    (job,) = lab.create_jobs(1, plugins=(Path("gone.py"),))
    (outcome,) = lab.launch(Local(1), [job])
    assert outcome.error == "the plugin 'gone.py' is not a file: give the path of a Python file"


@pytest.mark.slow
def test_workers_share_the_cores_and_send_events(lab: Any) -> None:
    jobs = lab.create_jobs(2, threads=None)
    for outcome in lab.launch(Local(2), jobs):
        assert outcome.record.execution["threads"] == max(1, cores() // 2)
    for job in jobs:
        lab.check_events(job)


@pytest.mark.slow
def test_an_interrupt_ends_all_processes(lab: Any) -> None:
    jobs, processes = lab.create_jobs(2, per_class=100), dict[str, int]()

    def interrupt(run: str, event: Mapping[str, Any]) -> None:
        (job,) = (job for job in jobs if job.id == run)
        processes[run] = int((job.directory.path / "lock").read_text())
        if len(processes) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Local(2).launch(jobs, interrupt))
    assert not any(map(is_alive, processes.values()))
    assert not any(job.directory.record.exists() for job in jobs)
    for job in jobs:
        with job.directory.locked():
            assert job.directory.config.exists()


@pytest.mark.slow
def test_two_studies_do_not_write_the_same_run(lab: Any) -> None:
    (job,) = lab.create_jobs(1, per_class=60)
    first: list[Any] = []
    study = threading.Thread(target=lambda: first.extend(lab.launch(Local(1), [job])))
    study.start()
    process = lab.wait_for_process(job.out, job.id)
    os.kill(process, signal.SIGSTOP)  # it could be finished before the second starts
    (second,) = Local(1).launch([job], lambda run, event: None)
    os.kill(process, signal.SIGCONT)
    study.join()
    assert second.record is None
    assert f"is being written by process {process}" in str(second.error)
    assert first[0].record is not None
    lab.check_equal(job)


def test_a_job_is_restored_from_json(lab: Any) -> None:
    (job,) = lab.create_jobs(1, plugins=(lab.write_plugin("whole", "pass"),))
    job = dataclasses.replace(job, loggers=("tensorboard", "wandb"))
    assert Job.from_json(job.to_json()) == job


def test_zero_workers_are_refused() -> None:
    assert LAUNCHERS["local"] is Local
    error = r"^workers 0 is out of range: give an integer from 1 to 1,000,000$"
    with pytest.raises(SteradError, match=error):
        Local(0)


def test_too_many_workers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sterad.experiments.launchers.local.cores", lambda: 3)
    assert Local(12).workers == 12
    error = r"^workers 13 is more than this machine can run .* 3 cores, so give at most 12$"
    with pytest.raises(SteradError, match=error):
        Local(13)


def test_no_jobs_take_no_time() -> None:
    started = time.monotonic()
    assert list(Local().launch([], lambda run, event: None)) == []
    assert time.monotonic() - started < 1
