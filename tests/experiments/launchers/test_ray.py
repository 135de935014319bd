"""A real Ray cluster of two workers: kills, retries, locks, and addresses that do not answer."""

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
    # Ray leaves sockets and files of the processes that it starts to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # It will one day hide graphics cards differently from tasks that ask for none.
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Return the temporary folder of the cluster's machines; sockets need a short path."""
    made = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(made))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray's workers step back behind all else, and one that is not up in a minute is given up:
        # on two busy cores no run would ever begin.
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_worker_register_timeout_seconds", "600")
        yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Start a head without processors and two workers with one each; return the address."""
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
def test_a_study_of_twelve_with_a_worker_killed(trial: Any, address: str, folder: Path) -> None:
    jobs = trial.jobs(12, per_class=30)
    killed: list[int] = []

    def kill() -> None:
        killed.append(trial.holder(folder, "sterad-*/er-*"))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = trial.launched(Ray(address), jobs)
    killer.join()
    assert len(killed) == 1
    assert [one.error for one in outcomes] == [None] * 12
    expected = [dataclasses.replace(job, out=trial.folder / "expected") for job in jobs]
    trial.launched(Local(2), expected)
    for job in jobs:
        trial.check_equal(job)
        trial.check_told(job)
    assert not list(folder.glob("sterad-*")), "nothing stays on the machines"


@pytest.mark.slow
def test_on_a_shared_disk_a_killed_run_continues_with_the_code_of_here(
    trial: Any, address: str
) -> None:
    marker = trial.folder / "killed"
    act = (
        f"file = Path({str(marker)!r})\n"
        "            if self.seen.numel() and not file.exists():\n"
        "                file.write_text(sterad.__file__)\n"
        "                os.kill(os.getpid(), signal.SIGKILL)"
    )
    plugin = trial.plugin("killed-once", act)
    jobs = trial.jobs(2, per_class=10, method="killed-once", plugins=(plugin,))
    for outcome in trial.launched(Ray(address, shared=True), jobs):
        assert outcome.error is None
    assert "py_modules" in marker.read_text(), "the code has been sent along"
    # What the killed process had just told died with it; what it had written did not.
    kinds = [one["event"] for one in trial.written(jobs[1])]
    assert kinds.count("start") == 1
    assert kinds.count("resume") == 1
    trial.check_equal(jobs[1])
    trial.check_told(jobs[1])


@pytest.mark.slow
def test_what_a_slow_cluster_tells_late_is_told(
    trial: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "PULSE", 1e-4)  # no answer comes in that time
    (job,) = trial.jobs(1)
    assert trial.launched(Ray(address), [job])[0].error is None
    heard, wrote = (
        [(one["event"], one["step"]) for one in events]
        for events in (trial.events[job.id], trial.written(job))
    )
    assert heard == wrote


@pytest.mark.slow
def test_a_worker_that_always_dies_and_a_directory_in_use(trial: Any, address: str) -> None:
    plugin = trial.plugin("dies", "os._exit(3)")
    jobs = trial.jobs(3, method="dies", plugins=(plugin,))
    with jobs[0].place.locked():
        used, dead, good = trial.launched(Ray(address, retries=1), jobs)
    assert "is being written by process" in used.error
    assert "its worker died each time that it was tried" in dead.error
    assert good.record is not None
    with jobs[1].place.locked():
        assert not jobs[1].place.record.exists()


@pytest.mark.slow
@pytest.mark.parametrize("mute", [True, False])
def test_an_address_that_does_not_answer(mute: bool, trial: Any) -> None:
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        if mute:
            port.listen()
        address = f"127.0.0.1:{port.getsockname()[1]}"
        before = time.monotonic()
        subprocess.run([sys.executable, "-c", "import ray"], check=True)
        started = time.monotonic()
        with pytest.raises(SteradError, match=f"no Ray cluster answers at '{address}'"):
            list(Ray(address).launch(trial.jobs(1), trial.heard))
        imported = started - before  # under a second, unless others keep the machine busy
        assert time.monotonic() - started < 10 + 2 * max(0, imported - 1)
    assert not (trial.folder / "runs").exists()


@pytest.mark.slow
def test_a_cluster_started_here_refuses_what_it_has_not(trial: Any, folder: Path) -> None:
    with pytest.raises(SteradError, match=r"each run asks for 4000 CPU and this machine has"):
        list(Ray(cpus=4000).launch(trial.jobs(1), trial.heard))


def test_numbers_that_no_cluster_can_have() -> None:
    assert LAUNCHERS["ray"] is Ray
    for name, value, wanted in (
        ("workers", 0, "an integer from 1 to 1,000,000"),
        ("cpus", -1.0, "a number in [0, 4096]"),
        ("cpus", 5000.0, "a number in [0, 4096]"),
        ("gpus", -0.5, "a number in [0, 4096]"),
        ("retries", -1, "an integer from 0 to 1,000"),
    ):
        values: dict[str, Any] = {name: value}
        with pytest.raises(SteradError) as refused:
            Ray(**values)
        assert str(refused.value) == f"{name} {value} is out of range: give {wanted}"


def test_a_missing_library_is_a_sentence(trial: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SteradError, match=r"pip install 'sterad\[ray\]'"):
        list(Ray().launch(trial.jobs(1), trial.heard))


def test_the_library_is_imported_only_when_used() -> None:
    words = "import sys, sterad.experiments.launchers; print('ray' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert said.stdout.strip() == "False"
