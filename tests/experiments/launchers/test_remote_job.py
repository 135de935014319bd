"""The files that are sent to a remote machine and back, without a cluster."""

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from sterad.experiments.launchers.job import Job, Outcome
from sterad.experiments.launchers.remote_job import RemoteJob, run_remote_job, store_result
from sterad.experiments.run import CODE_VERSION_VARIABLE, provenance


@pytest.fixture(autouse=True)
def remote_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the temporary folder of the remote machine."""
    folder = tmp_path / "remote"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    # Events arrive at once, so there is nothing to wait for.
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(wait=lambda sent, timeout: None))
    monkeypatch.chdir(tmp_path)
    return folder


class LocalActor:
    """An `EventActor` with the interface of a Ray handle."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.add = SimpleNamespace(remote=lambda run, event: self.events.append((run, event)))


def run_remotely(job: Job, shared: bool = False) -> Outcome:
    actor = LocalActor()
    with job.directory.locked():
        error, files = run_remote_job(RemoteJob.create(job, shared), actor)
        assert shared or error or sorted(files) == ["config.json", "events.jsonl", "record.json"]
        assert {run for run, _ in actor.events} == {job.id}
        return store_result(job, error, files)


def test_the_files_of_a_run_are_sent_back(lab: Any, remote_folder: Path) -> None:
    (job,) = lab.create_jobs(1)
    assert run_remotely(job).record == job.directory.read_record()
    lab.check_equal(job)
    assert list(remote_folder.glob("sterad-*")) == [], "temporary files are removed"


class InterruptingLogger:
    """A logger that interrupts a run at step 5."""

    def __enter__(self) -> Self:
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        if event["step"] == 5:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        pass


def test_an_interrupted_run_is_sent_and_resumed(lab: Any) -> None:
    (job,) = lab.create_jobs(1)
    with pytest.raises(KeyboardInterrupt):
        job.run([InterruptingLogger()])
    assert run_remotely(job).record is not None
    assert '"resume", "step": 4' in job.directory.events.read_text()
    lab.check_equal(job)


def test_plugins_are_sent_with_their_content(lab: Any) -> None:
    file = lab.write_plugin("sent-along", "pass")
    (job,) = lab.create_jobs(1, method="sent-along", plugins=(file,))
    remote = RemoteJob.create(job, False)
    assert remote.plugins == (("sent-along.py", file.read_bytes()),)


def test_a_failed_run_sends_back_its_traceback_only(lab: Any, remote_folder: Path) -> None:
    (job,) = lab.create_jobs(1, lr=1e5)
    outcome = run_remotely(job)
    assert "diverged" in str(outcome.error)
    assert sorted(file.name for file in job.directory.path.iterdir()) == ["lock"]
    outcome = store_result(job, "KeyError", {"traceback.txt": b"line 1", "events.jsonl": b""})
    assert outcome == Outcome(job, None, "KeyError")
    assert (job.directory.path / "traceback.txt").read_text() == "line 1"
    assert not job.directory.events.exists()
    assert list(remote_folder.glob("sterad-*")) == []


def test_loggers_run_here_without_a_shared_disk(lab: Any) -> None:
    (job,) = lab.create_jobs(1)
    job = dataclasses.replace(job, loggers=("tensorboard",))
    assert json.loads(RemoteJob.create(job, False).job)["loggers"] == []
    assert json.loads(RemoteJob.create(job, True).job)["loggers"] == ["tensorboard"]
    assert run_remotely(job).record is not None
    assert list(job.directory.path.glob("tensorboard/events.out.*"))


def test_provenance_of_code_that_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        os.environ, CODE_VERSION_VARIABLE, '{"version": "9.9", "git_commit": "abc"}'
    )
    values = provenance()
    assert (values["version"], values["git_commit"]) == ("9.9", "abc")
