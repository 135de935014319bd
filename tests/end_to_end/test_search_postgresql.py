"""Two processes share one search in a real PostgreSQL server."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SMALL = [
    *("--dataset", "synthetic", "--classes", "4", "--per-class", "20", "--tasks", "2"),
    *("--memory", "10", "--width", "2", "--threads", "1", "--views", "1", "--memory-batch", "4"),
]


def find_program(name: str) -> str:
    """Return the path of a program of PostgreSQL."""
    found = shutil.which(name) or next((str(b / name) for b in reversed(BINARIES)), None)
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: there is no {name}")
    return found


def switch_user() -> list[str]:
    """Return a prefix that runs a command as a user that the server accepts."""
    if os.getuid() != 0:
        return []
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL refuses to run as root and there is no user postgres")
    if shutil.which("runuser") is None:
        pytest.skip("PostgreSQL refuses to run as root and runuser is not installed")
    return ["runuser", "-u", "postgres", "--"]


@pytest.fixture
def url() -> Iterator[str]:
    """Start a server in a temporary folder; stop it after the test."""
    initdb, server = find_program("initdb"), find_program("postgres")
    prefix = switch_user()
    # Not under tmp_path, which another user cannot read.
    folder = Path(tempfile.mkdtemp(prefix="sterad-pg-"))
    if prefix:
        shutil.chown(folder, "postgres")
    data, port = folder / "data", free_port()
    subprocess.run(
        [*prefix, initdb, "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    settings = ["-p", str(port), "-k", str(folder), "-h", "127.0.0.1", "-F"]
    process = subprocess.Popen(
        [*prefix, server, "-D", str(data), *settings],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        wait_for(port, process)
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    finally:
        # A fast shutdown ends open sessions.
        control = [*prefix, find_program("pg_ctl"), "-D", str(data), "-m", "fast", "stop"]
        subprocess.run(control, capture_output=True, cwd=folder)
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        assert process.poll() is None, "the server has ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the server does not accept connections")


@pytest.mark.slow
def test_two_processes_share_one_search(url: str, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text("[er]\nlr = [0.001, 0.01, 0.1]\nmomentum = [0.0, 0.9]\n")
    argv = ["search", "er", *SMALL, "--space", "space.toml", "--sampler", "grid"]
    command = [sys.executable, "-m", "sterad.cli", *argv, "--storage", url, "--no-prune"]
    command += ["--seeds", "7", "--workers", "1", "--out"]
    # Two folders, like two machines without a shared disk.
    processes = [
        subprocess.Popen(
            [*command, f"runs-{name}"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    storage = RDBStorage(url)
    (study,) = optuna.get_all_study_summaries(storage)
    trials = optuna.load_study(study_name=study.study_name, storage=storage).trials
    storage.engine.dispose()
    points = [(t.params["lr"], t.params["momentum"]) for t in trials]
    assert len(points) == len(set(points)) == 6
    assert {t.state for t in trials} == {TrialState.COMPLETE}
    runs = [len(list((tmp_path / f"runs-{name}").glob("*/record.json"))) for name in ("a", "b")]
    assert sum(runs) == 6
    assert min(runs) > 0
    for name in ("a", "b"):  # both write the best of all trials
        (found,) = (tmp_path / f"runs-{name}").glob("er-synthetic-*.toml")
        assert "[er]" in found.read_text()
