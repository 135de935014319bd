"""Real processes on this machine: crashes, kills, bad plugins, and leaving in the middle."""

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


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_killed_run_is_one_failure_and_continues(trial: Any) -> None:
    jobs = trial.jobs(3, per_class=40)
    killer = threading.Thread(
        target=lambda: os.kill(trial.holder(jobs[0].out, jobs[0].id), signal.SIGKILL)
    )
    killer.start()
    killed, *others = trial.launched(Local(2), jobs)
    killer.join()
    assert "signal SIGKILL" in killed.error
    assert "continues" in killed.error
    assert killed.record is None
    assert all(one.record is not None and one.error is None for one in others)
    (again,) = trial.launched(Local(2), [jobs[0]])
    assert again.record is not None
    assert "resume" in [one["event"] for one in trial.events[jobs[0].id]]
    trial.check_told(jobs[2])
    trial.check_equal(jobs[0])
    trial.check_equal(jobs[2])


@pytest.mark.parametrize(
    ("name", "act", "said"),
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
def test_a_plugin_that_breaks_a_run_breaks_no_other(
    name: str, act: str, said: str, trial: Any
) -> None:
    jobs = trial.jobs(2, method=name, plugins=(trial.plugin(name, act),))
    good, bad = trial.launched(Local(2), jobs)
    assert good.record is not None
    assert bad.record is None
    assert said in bad.error
    assert (jobs[1].place.path / "traceback.txt").exists() == (name in ("raises", "prints"))


def test_a_plugin_that_is_gone_is_a_sentence(trial: Any) -> None:
    (job,) = trial.jobs(1, plugins=(Path("gone.py"),))
    (outcome,) = trial.launched(Local(1), [job])
    assert outcome.error == "the plugin 'gone.py' is not a file: give the path of a Python file"


def test_workers_share_the_threads_and_tell_events(trial: Any) -> None:
    jobs = trial.jobs(2, threads=None)
    for outcome in trial.launched(Local(2), jobs):
        assert outcome.record.execution["threads"] == max(1, cores() // 2)
    for job in jobs:
        trial.check_told(job)


def test_leaving_ends_all_processes(trial: Any) -> None:
    jobs, holders = trial.jobs(2, per_class=100), dict[str, int]()

    def interrupted(run: str, event: Mapping[str, Any]) -> None:
        (job,) = (one for one in jobs if one.id == run)
        holders[run] = int((job.place.path / "lock").read_text())
        if len(holders) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Local(2).launch(jobs, interrupted))
    assert not any(map(alive, holders.values()))
    assert not any(job.place.record.exists() for job in jobs)
    for job in jobs:
        with job.place.locked():
            assert job.place.config.exists()


@pytest.mark.slow
def test_two_studies_that_write_one_directory(trial: Any) -> None:
    (job,) = trial.jobs(1, per_class=60)
    first: list[Any] = []
    study = threading.Thread(target=lambda: first.extend(trial.launched(Local(1), [job])))
    study.start()
    process = trial.holder(job.out, job.id)
    os.kill(process, signal.SIGSTOP)  # or it may be done before the second has begun
    (second,) = Local(1).launch([job], lambda run, event: None)
    os.kill(process, signal.SIGCONT)
    study.join()
    assert second.record is None
    assert f"is being written by process {process}" in str(second.error)
    assert first[0].record is not None, "the first loses nothing"
    trial.check_equal(job)


def test_the_text_of_a_job_says_all_of_it(trial: Any) -> None:
    (job,) = trial.jobs(1, plugins=(trial.plugin("whole", "pass"),))
    job = dataclasses.replace(job, loggers=("tensorboard", "wandb"))
    assert Job.from_json(job.to_json()) == job


def test_no_workers_are_refused() -> None:
    assert LAUNCHERS["local"] is Local
    told = r"^workers 0 is out of range: give an integer from 1 to 1,000,000$"
    with pytest.raises(SteradError, match=told):
        Local(0)


def test_more_runs_than_the_machine_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sterad.experiments.launchers.local.cores", lambda: 3)
    assert Local(12).workers == 12
    told = r"^workers 13 is more than this machine can run .* 3 cores, so give at most 12$"
    with pytest.raises(SteradError, match=told):
        Local(13)


def test_nothing_to_do_takes_no_time() -> None:
    started = time.monotonic()
    assert list(Local().launch([], lambda run, event: None)) == []
    assert time.monotonic() - started < 1
