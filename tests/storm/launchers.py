"""Kills of studies and searches: of the command, of its workers, and of Ray's raylet.

Every process of a storm has the folder of the storm in its environment, and only those are killed.
"""

import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.storm.checks import Tally, check_files, check_finished, check_output, run_directories
from tests.storm.processes import Process, start_command, wait

LAUNCHER_STORMS = ("study", "slurm", "search", "ray")
MARK = "STERAD_STORM"
MAX_WAIT_S = 1.2
"""Seconds between the start of a worker and a kill; its run takes about as long."""
MAX_STARTS = 200
"""A study that has not finished after so many starts makes no progress."""
VALUES = """
dataset = "synthetic"
classes = 4
per_class = 150
test_per_class = 4
tasks = 4
memory = 20
memory_batch = 8
width = 2
encoder = "mlp"
anytime = 4
"""
STUDY = f"""[fixed]{VALUES}
[axes]
method = ["er", "agd-fd", "finetune"]
stream = ["clear", "blurry"]
"""
SPACE = "[er]\nlr = [0.1, 0.01]\nmomentum = [0.0, 0.9]\n"
SEARCH = ["search", "er", "--sampler=grid", "--no-prune", "--seeds=100", "--checkpoint-every=1"]
OPTIONS = {
    "study": ["--launcher=local", "--workers=2"],
    "search": ["--launcher=local", "--workers=2"],
    "slurm": ["--launcher=slurm", "--cluster=local", "--workers=2", "--retries=100"],
    "ray": ["--launcher=ray", "--workers=2", "--retries=100"],
}


@dataclass
class LauncherStorm:
    """A study or search whose processes are killed until a number of kills is reached."""

    name: str
    folder: Path
    rng: random.Random
    options: list[str]
    victims: dict[str, Callable[[int], bool]] = field(default_factory=dict)
    """Functions that send a signal to another kind of process; True if there was one."""
    tally: Tally = field(default_factory=Tally)
    rounds: int = 0

    def run(self, kills: int) -> Tally:
        """Run once without kills, then kill, continue and compare."""
        (self.folder / "study.toml").write_text(STUDY)
        (self.folder / "space.toml").write_text(SPACE)
        (self.folder / "values.toml").write_text(VALUES)
        code = wait(self.start("reference", ["--workers=2"]))
        assert code == 0, (self.folder / "reference.txt").read_text()
        while self.tally.kills < kills and self.rounds < kills + 3:
            self.rounds += 1
            self.run_once(kills)
        return self.tally

    def start(self, name: str, options: list[str]) -> Process:
        """Start the command with its own folder and output."""
        argv = ["study", str(self.folder / "study.toml")]
        if self.name == "search":
            files = [f"--space={self.folder}/space.toml", f"--config={self.folder}/values.toml"]
            argv = [*SEARCH, *files]
        argv += [*options, f"--out={self.folder / name}", "--threads=1"]
        return start_command(argv, self.folder / f"{name}.txt")

    def run_once(self, kills: int) -> None:
        """Kill processes of a new study until it is finished, and compare its runs."""
        out, process = self.folder / f"killed-{self.rounds}", None
        options = self.options + (["--shared"] if self.name == "ray" and self.rounds % 2 else [])
        code: int | None = 1
        for _ in range(MAX_STARTS):
            process = self.start(out.name, options)
            code = self.kill_until_ended(process, out, kills)
            if code == 0:
                break
        output = self.folder / f"{out.name}.txt"
        check_output(output, self.name, self.tally)
        if code != 0:
            self.tally.report("hanging", self.name, output.read_text()[-1000:])
            return
        self.compare(out)

    def kill_until_ended(self, process: Process, out: Path, kills: int) -> int | None:
        """Send signals to processes of a command until it ends; return its exit code."""
        while process.poll() is None:
            if self.tally.kills >= kills:
                return wait(process)
            wait(process, lambda: bool(self.find_workers(out)))
            until = time.monotonic() + self.rng.uniform(0, MAX_WAIT_S)
            wait(process, lambda t=until: time.monotonic() >= t)  # type: ignore[misc]
            if process.poll() is None:
                self.kill_one(process, out)
                for directory in run_directories(out):
                    check_files(directory, self.name, self.tally)
        return process.poll()

    def kill_one(self, process: Process, out: Path) -> None:
        """Send a signal to the command, to one of its workers, or to another process."""
        number = signal.SIGTERM if self.rng.random() < 0.25 else signal.SIGKILL
        victim = self.rng.choice(("command", "worker", "worker", *self.victims))
        if victim == "command":
            process.send_signal(number)
            if wait(process) in (-number, 128 + number):
                self.tally.count_kill(number, f"{self.name} command", "time")
        elif victim == "worker":
            if workers := self.find_workers(out):
                os.kill(self.rng.choice(workers), number)
                self.tally.count_kill(number, f"{self.name} worker", "time")
        elif self.victims[victim](number):
            self.tally.count_kill(number, victim, "time")

    def find_workers(self, out: Path) -> list[int]:
        """Return the processes that hold the locks of runs, without the command itself."""
        folders = [out, Path(tempfile.gettempdir())]
        locks = [*folders[0].glob("**/lock"), *folders[1].glob("sterad-*/*/lock")]
        found = {int(text) for lock in locks if (text := read_or_empty(lock)).isdigit()}
        return sorted(pid for pid in found if self.is_worker(pid))

    def is_worker(self, pid: int) -> bool:
        """Return whether a process belongs to this storm and is not a command."""
        process = Path("/proc") / str(pid)
        is_mine = f"{MARK}={self.folder}" in read_or_empty(process / "environ").split("\0")
        return is_mine and "sterad.cli" not in read_or_empty(process / "cmdline")

    def compare(self, out: Path) -> None:
        """Compare all runs with those of the reference."""
        killed = {directory.path.name: directory for directory in run_directories(out)}
        for reference in run_directories(self.folder / "reference"):
            name = reference.path.name
            if name in killed:
                check_finished(killed[name], reference, f"{self.name}, {name}", self.tally)
            else:
                self.tally.report("lost_records", self.name, name)
        if self.name == "search" and self.read_trials(out) != self.read_trials("reference"):
            self.tally.report("differing_records", "trials of the search", self.read_trials(out))

    def read_trials(self, out: str | Path) -> list[tuple[Any, ...]]:
        """Return parameters and value of each complete trial of a search."""
        import optuna

        from sterad.experiments.search.storage import open_storage

        (journal,) = (self.folder / out).rglob("*.journal")
        storage = open_storage(str(journal))
        (study,) = optuna.get_all_study_names(storage)
        trials = optuna.load_study(study_name=study, storage=storage).get_trials(deepcopy=False)
        complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
        return sorted((*sorted(trial.params.items()), trial.value) for trial in complete)


def read_or_empty(file: Path) -> str:
    """Return the content of a file that may vanish meanwhile."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def run_launcher_storm(name: str, folder: Path, rng: random.Random, kills: int) -> Tally:
    """Kill a study or search; call it in a process of its own, because Ray starts threads."""
    folder.mkdir(parents=True)
    os.environ[MARK] = str(folder)
    storm = LauncherStorm(name, folder, rng, list(OPTIONS[name]))
    if name == "ray":
        with ray_cluster() as cluster:
            storm.options.append(f"--address={cluster.address}")
            storm.victims["raylet"] = lambda number: replace_node(cluster, number)
            return storm.run(kills)
    return storm.run(kills)


SMALL_NODE: dict[str, Any] = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


@contextlib.contextmanager
def ray_cluster() -> Iterator[Any]:
    """Start a head without CPUs and two workers with one each."""
    from ray.cluster_utils import Cluster

    # Sockets need a short path. Workers must start within a minute by default, with low priority.
    temporary = tempfile.mkdtemp(prefix="r", dir="/tmp")
    os.environ |= {
        "TMPDIR": temporary,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_worker_register_timeout_seconds": "600",
    }
    tempfile.tempdir = None
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL_NODE})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, **SMALL_NODE)
        yield cluster
    finally:
        cluster.shutdown()
        shutil.rmtree(temporary, ignore_errors=True)


def replace_node(cluster: Any, number: int) -> bool:
    """Kill the raylet of a worker node and start another node."""
    node = sorted(cluster.worker_nodes, key=id)[0]
    os.kill(node.all_processes["raylet"][0].process.pid, number)
    cluster.remove_node(node, allow_graceful=False)
    cluster.add_node(num_cpus=1, **SMALL_NODE)
    return True
