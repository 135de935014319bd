"""What goes to a machine that shares nothing, and what comes back, without a cluster."""

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from sterad.experiments.launchers.job import Job, Outcome
from sterad.experiments.launchers.remote_job import Parcel, delivered, open_and_run
from sterad.experiments.provenance import SHIPPED, provenance


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the temporary folder of the other machine."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


class Ear:
    """What an actor looks like from where it is called."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.tell = SimpleNamespace(remote=lambda run, event: self.events.append((run, event)))


def sent(job: Job, shared: bool = False) -> Outcome:
    ear = Ear()
    with job.place.locked():
        error, files = open_and_run(Parcel.of(job, shared, "token"), ear)
        assert shared or error or sorted(files) == ["config.json", "events.jsonl", "record.json"]
        assert {run for run, _ in ear.events} == {job.id}
        return delivered(job, error, files, shared)


def test_what_comes_back_is_the_run(trial: Any, elsewhere: Path) -> None:
    (job,) = trial.jobs(1)
    assert sent(job).record == job.place.read_record()
    trial.check_equal(job)
    assert list(elsewhere.glob("sterad-*")) == [], "nothing stays behind"


class Stop:
    """A logger that interrupts a run in the middle."""

    def __enter__(self) -> Self:
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        if event["step"] == 5:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        pass


def test_a_begun_run_goes_along_and_continues(trial: Any) -> None:
    (job,) = trial.jobs(1)
    with pytest.raises(KeyboardInterrupt):
        job.run([Stop()])
    assert sent(job).record is not None
    assert '"resume", "step": 4' in job.place.events.read_text()
    trial.check_equal(job)


def test_plugins_go_by_their_content(trial: Any) -> None:
    file = trial.plugin("sent-along", "pass")
    (job,) = trial.jobs(1, method="sent-along", plugins=(file,))
    parcel = Parcel.of(job, False, "token")
    assert parcel.plugins == (("sent-along.py", file.read_bytes()),)


def test_a_failure_leaves_its_traceback_here_and_nothing_else(trial: Any, elsewhere: Path) -> None:
    (job,) = trial.jobs(1, lr=1e5)
    outcome = sent(job)
    assert "diverged" in str(outcome.error)
    assert sorted(one.name for one in job.place.path.iterdir()) == ["lock"]
    outcome = delivered(job, "KeyError", {"traceback.txt": b"line 1", "events.jsonl": b""}, False)
    assert outcome == Outcome(job, None, "KeyError")
    assert (job.place.path / "traceback.txt").read_text() == "line 1"
    assert not job.place.events.exists()
    assert list(elsewhere.glob("sterad-*")) == []


def test_sinks_write_here_what_was_told_there(trial: Any) -> None:
    (job,) = trial.jobs(1)
    job = dataclasses.replace(job, loggers=("tensorboard",))
    assert json.loads(Parcel.of(job, False, "token").job)["loggers"] == []
    assert json.loads(Parcel.of(job, True, "token").job)["loggers"] == ["tensorboard"]
    assert sent(job).record is not None
    assert list(job.place.path.glob("tensorboard/events.out.*"))


def test_code_that_was_sent_says_where_it_is_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, SHIPPED, '{"version": "9.9", "git_commit": "abc"}')
    told = provenance()
    assert (told["version"], told["git_commit"]) == ("9.9", "abc")
