"""A real Ray cluster of two workers: kills, retries, locks, and wrong addresses."""

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.experiments.launchers import LAUNCHERS, Local, Ray, ray

pytestmark = [
    # Ray does not close all sockets and files of the processes that it starts.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Ray announces a change of how GPUs are hidden from tasks that reserve none.
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Return the temporary folder of the cluster; sockets need a short path."""
    path = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(path))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # By default workers have low priority and must start within a minute, which fails on a busy
        # machine.
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_worker_register_timeout_seconds", "600")
        yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Start a head without CPUs and two workers with one each; return the address."""
    from ray.cluster_utils import Cluster

    small: dict[str, Any] = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, **small)
        yield str(cluster.address)
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_is_retried(lab: Any, address: str, folder: Path) -> None:
    jobs = lab.create_jobs(12, per_class=30)
    killed: list[int] = []

    def kill() -> None:
        killed.append(lab.wait_for_process(folder, "sterad-*/er-*"))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = lab.launch(Ray(address), jobs)
    killer.join()
    assert len(killed) == 1
    assert [outcome.error for outcome in outcomes] == [None] * 12
    expected = [dataclasses.replace(job, out=lab.folder / "expected") for job in jobs]
    lab.launch(Local(2), expected)
    for job in jobs:
        lab.check_equal(job)
        lab.check_events(job)
    assert not list(folder.glob("sterad-*")), "temporary files are removed"


@pytest.mark.slow
def test_on_a_shared_disk_a_killed_run_is_resumed_with_the_code_that_was_sent(
    lab: Any, address: str
) -> None:
    marker = lab.folder / "killed"
    statement = (
        f"file = Path({str(marker)!r})\n"
        "            if self.seen.numel() and not file.exists():\n"
        "                file.write_text(sterad.__file__)\n"
        "                os.kill(os.getpid(), signal.SIGKILL)"
    )
    plugin = lab.write_plugin("killed-once", statement)
    jobs = lab.create_jobs(2, per_class=10, method="killed-once", plugins=(plugin,))
    for outcome in lab.launch(Ray(address, shared=True), jobs):
        assert outcome.error is None
    assert "py_modules" in marker.read_text()
    # Events that the killed process had not sent yet are lost; those on disk are not.
    kinds = [event["event"] for event in lab.read_events(jobs[1])]
    assert kinds.count("start") == 1
    assert kinds.count("resume") == 1
    lab.check_equal(jobs[1])
    lab.check_events(jobs[1])


@pytest.mark.slow
def test_events_of_a_slow_cluster_are_not_lost(
    lab: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "POLL_INTERVAL_S", 1e-4)  # too short for a reply
    (job,) = lab.create_jobs(1)
    assert lab.launch(Ray(address), [job])[0].error is None
    received, written = (
        [(event["event"], event["step"]) for event in events]
        for events in (lab.events[job.id], lab.read_events(job))
    )
    assert received == written


@pytest.mark.slow
def test_a_dying_worker_and_a_locked_directory_fail_alone(lab: Any, address: str) -> None:
    plugin = lab.write_plugin("dies", "os._exit(3)")
    jobs = lab.create_jobs(3, method="dies", plugins=(plugin,))
    with jobs[0].directory.locked():
        locked, dead, good = lab.launch(Ray(address, retries=1), jobs)
    assert "is being written by process" in locked.error
    assert "its worker died in every attempt" in dead.error
    assert good.record is not None
    with jobs[1].directory.locked():
        assert not jobs[1].directory.record.exists()


@pytest.mark.slow
@pytest.mark.parametrize("listens", [True, False])
def test_an_address_without_a_cluster_is_an_error(listens: bool, lab: Any) -> None:
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        if listens:
            port.listen()
        address = f"127.0.0.1:{port.getsockname()[1]}"
        before = time.monotonic()
        subprocess.run([sys.executable, "-c", "import ray"], check=True)
        started = time.monotonic()
        with pytest.raises(SteradError, match=f"cannot connect to a Ray cluster at '{address}'"):
            list(Ray(address).launch(lab.create_jobs(1), lab.on_event))
        imported = started - before  # below a second, unless the machine is busy
        assert time.monotonic() - started < 10 + 2 * max(0, imported - 1)
    assert not (lab.folder / "runs").exists()


@pytest.mark.slow
def test_more_cpus_than_this_machine_has_are_refused(lab: Any, folder: Path) -> None:
    with pytest.raises(SteradError, match=r"each run needs 4000 CPU and this machine has"):
        list(Ray(cpus=4000).launch(lab.create_jobs(1), lab.on_event))


def test_values_out_of_range_are_refused() -> None:
    assert LAUNCHERS["ray"] is Ray
    for name, value, allowed in (
        ("workers", 0, "an integer from 1 to 1,000,000"),
        ("cpus", -1.0, "a number in [0, 4096]"),
        ("cpus", 5000.0, "a number in [0, 4096]"),
        ("gpus", -0.5, "a number in [0, 4096]"),
        ("retries", -1, "an integer from 0 to 1,000"),
    ):
        values: dict[str, Any] = {name: value}
        with pytest.raises(SteradError) as caught:
            Ray(**values)
        assert str(caught.value) == f"{name} {value} is out of range: give {allowed}"


def test_a_missing_library_is_an_error(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SteradError, match=r"pip install 'sterad\[ray\]'"):
        list(Ray().launch(lab.create_jobs(1), lab.on_event))


def test_ray_is_imported_only_when_it_is_used() -> None:
    code = "import sys, sterad.experiments.launchers; print('ray' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stdout.strip() == "False"
