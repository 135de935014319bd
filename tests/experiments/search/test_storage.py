import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.experiments.search import storage
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.searching import Search

Plans = Callable[..., SearchPlan]


def refusal(plan: SearchPlan, url: str) -> str:
    began = time.monotonic()
    with pytest.raises(SteradError) as caught:
        Search.open(plan, url)
    assert time.monotonic() - began < 30  # a busy machine needs more than our 8 s
    return str(caught.value)


def test_a_server_that_is_not_there(plan: Plans) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = refusal(plan(), f"postgresql+psycopg://me:secret@127.0.0.1:{port}/tuning")
    assert "does not answer" in said
    assert "refused" in said
    assert "secret" not in said


def test_a_server_that_is_silent(plan: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(storage.CONNECTING["postgresql"], "connect_timeout", 2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        said = refusal(plan(), f"postgresql+psycopg://me@127.0.0.1:{port}/tuning")
    assert "timeout" in said


def test_a_database_that_is_locked(
    plan: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(storage.CONNECTING, "sqlite", {"timeout": 0.3})
    url = f"sqlite:///{tmp_path}/search.db"
    Search.open(plan(), url)
    other = sqlite3.connect(tmp_path / "search.db")
    other.execute("BEGIN EXCLUSIVE")
    assert "database is locked" in refusal(plan(), url)
    other.close()
    assert Search.open(plan(), url).missing() == 4


@pytest.mark.parametrize("url", ["postgres//:x://", "nosuch://host/name", "mysql+nodriver://h/n"])
def test_what_is_no_database(plan: Plans, url: str) -> None:
    assert url.partition(":")[0] in refusal(plan(), url)
