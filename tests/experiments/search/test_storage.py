import fcntl
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from sterad.errors import SteradError
from sterad.experiments.search import storage
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.search import Search
from sterad.experiments.search.storage import (
    open_storage,
    requeue_abandoned_trials,
    set_owner,
    storage_errors,
)

CreatePlan = Callable[..., SearchPlan]


def open_error(plan: SearchPlan, url: str) -> str:
    """Return the error message of opening a storage, which must not take long."""
    started = time.monotonic()
    with pytest.raises(SteradError) as caught:
        Search.open(plan, url)
    assert time.monotonic() - started < 30  # a busy machine needs more than the timeout of 8 s
    return str(caught.value)


def test_an_unreachable_server_is_an_error_without_the_password(create_plan: CreatePlan) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = open_error(create_plan(), f"postgresql+psycopg://me:secret@127.0.0.1:{port}/tuning")
    assert "is not available" in error
    assert "refused" in error
    assert "secret" not in error


def test_a_server_that_does_not_reply_is_an_error(
    create_plan: CreatePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(storage.CONNECT_ARGS["postgresql"], "connect_timeout", 2)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        error = open_error(create_plan(), f"postgresql+psycopg://me@127.0.0.1:{port}/tuning")
    assert "timeout" in error


def test_a_locked_database_is_an_error(
    create_plan: CreatePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(storage.CONNECT_ARGS, "sqlite", {"timeout": 0.3})
    url = f"sqlite:///{tmp_path}/search.db"
    Search.open(create_plan(), url)
    other = sqlite3.connect(tmp_path / "search.db")
    other.execute("BEGIN EXCLUSIVE")
    assert "database is locked" in open_error(create_plan(), url)
    other.close()
    assert Search.open(create_plan(), url).count_missing() == 4


@pytest.mark.parametrize("url", ["postgres//:x://", "nosuch://host/name", "mysql+nodriver://h/n"])
def test_an_invalid_url_is_an_error(create_plan: CreatePlan, url: str) -> None:
    assert url.partition(":")[0] in open_error(create_plan(), url)


def open_journal(file: Path) -> optuna.Study:
    with storage_errors(str(file)):
        journal = open_storage(str(file))
        return optuna.create_study(storage=journal, study_name="one", load_if_exists=True)


def test_a_journal_keeps_trials(tmp_path: Path) -> None:
    study = open_journal(tmp_path / "new" / "search.journal")
    study.tell(study.ask(), 0.5)
    assert open_journal(tmp_path / "new" / "search.journal").best_value == 0.5


def test_a_locked_journal_is_an_error_after_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "STORAGE_TIMEOUT_S", 0.3)
    study, started = open_journal(tmp_path / "j"), time.monotonic()
    with open(tmp_path / "j.lock", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        error = r"j' is not available or locked \(.*lock.*\): finished runs are kept"
        with pytest.raises(SteradError, match=error), storage_errors(str(tmp_path / "j")):
            study.ask()
    assert 0.3 < time.monotonic() - started < 5
    assert study.ask().number == 0


def test_an_incomplete_last_line_of_a_journal_is_removed(tmp_path: Path) -> None:
    before = open_journal(tmp_path / "j")
    before.tell(before.ask(), 0.5)
    with open(tmp_path / "j", "ab") as file:
        file.write(b'{"op_code": 4, "worker')
    after = open_journal(tmp_path / "j")
    after.tell(after.ask(), 0.7)
    assert [trial.value for trial in open_journal(tmp_path / "j").trials] == [0.5, 0.7]


def test_a_file_that_is_not_a_journal_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("[er]\nlr = 1\n")
    with pytest.raises(SteradError, match="is not the journal of a search, or is damaged"):
        open_journal(tmp_path / "j")
    assert (tmp_path / "j").read_text() == "[er]\nlr = 1\n"


@pytest.mark.parametrize("content", [b"last line without an end", b"\x80\x02}q\x00.", b"\xff"])
def test_a_foreign_file_keeps_its_last_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(SteradError, match="is not the journal of a search, or is damaged"):
        open_journal(tmp_path / "j")
    assert (tmp_path / "j").read_bytes() == content


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"op_code":0', '"op_code":99'),
        ('"op_code":0', '"op":0'),
        ('"directions":[2]', '"directions":[1]'),
        ('"directions":[2]', '"directions":[2,2]'),
        ('"finals":[0.5]', '"finals":["high"]'),
        ('"finals":[0.5]', '"other":[0.5]'),
        ('"values":[0.5]', '"values":["high"]'),
        ('"values":[0.5]', '"values":[Infinity]'),
        ('"trial_id":0', '"trial_id":' + "9" * 5000),
        ('"trial_id":0', '"trial_id":' + "[" * 100_000),
    ],
)
def test_a_damaged_journal_is_named(
    create_plan: CreatePlan, tmp_path: Path, old: str, new: str
) -> None:
    plan, file = create_plan(), tmp_path / "search.journal"
    study = Search.open(plan, str(file)).study
    trial = study.ask(plan.space.distributions())
    trial.set_user_attr("finals", [0.5])
    study.tell(trial, 0.5)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(SteradError, match=r"search.journal' is not the journal .*: choose another"):
        Search.open(plan, str(file))


def test_a_journal_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SteradError, match=r"not available .*\((Not a directory|File exists)\)"):
        open_journal(tmp_path / "file" / "j")
    with pytest.raises(SteradError, match=r"\(Is a directory\)"):
        open_journal(tmp_path)


def count_requeued(study: optuna.Study) -> int:
    """Requeue abandoned trials; return how many points were queued."""
    before = len(study.trials)
    requeue_abandoned_trials(study)
    return len(study.trials) - before


def start_trial(study: optuna.Study, **owner: object) -> None:
    trial = study.ask({"lr": FloatDistribution(0, 1)})
    set_owner(trial)
    trial.set_user_attr("owner", trial.user_attrs["owner"] | owner)


def dead_process() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_points_of_a_dead_process_are_requeued() -> None:
    study = optuna.create_study()
    start_trial(study, process=dead_process())
    (before,) = study.trials
    assert count_requeued(study) == 1
    assert count_requeued(study) == 0
    again = study.ask({"lr": FloatDistribution(0, 1)})
    assert again.params == before.params
    assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.RUNNING]


@pytest.mark.parametrize(
    ("owner", "requeued"),
    [
        ({"process": os.getppid()}, 0),
        ({"process": os.getpid()}, 1),
        ({"host": "elsewhere", "seen": time.time()}, 0),
        ({"host": "elsewhere", "seen": time.time() - 2 * storage.OWNER_TIMEOUT_S}, 1),
    ],
)
def test_trials_are_abandoned_by_process_and_by_time(
    owner: dict[str, object], requeued: int
) -> None:
    study = optuna.create_study()
    start_trial(study, **owner)
    assert count_requeued(study) == requeued


def test_an_abandoned_trial_without_parameters_is_not_requeued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = optuna.create_study()
    study.ask()
    assert count_requeued(study) == 0
    assert [t.state for t in study.trials] == [TrialState.RUNNING], "it has just been created"
    monkeypatch.setattr(storage, "OWNER_TIMEOUT_S", -1)
    assert count_requeued(study) == 0
    assert [t.state for t in study.trials] == [TrialState.FAIL]
