"""Kills of `sterad train`: every method on every stream, and live runs."""

import json
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sterad.engine.execution import Execution
from sterad.experiments.checkpoint import load_checkpoint
from sterad.experiments.live import live_config
from sterad.experiments.run import run
from sterad.methods import METHODS
from sterad.results.run_directory import RunDirectory
from tests.storm.checks import Tally, check_files, check_finished, check_output, run_directories
from tests.storm.processes import (
    Fork,
    Process,
    fork_command,
    start_command,
    wait,
)

STREAMS = (
    *("clear", "blurry", "domain", "i-blurry", "iid", "linear", "long-tail", "si-blurry"),
    *("replay-file", "live"),
)
DATA = ["--dataset=synthetic", "--classes=4", "--per-class=40", "--test-per-class=4"]
SMALL = ["--memory=20", "--anytime=4", "--threads=1", "--width=2"]
LIVE = {"memory": 20, "width": 2, "stretch": 30}
LIVE_STEPS, LIVE_BATCH = 16, 10
MAX_KILLS_PER_RUN = 8
NO_CHECKPOINTS = 100_000
"""Steps between checkpoints of an uninterrupted run."""
SENTENCE = "sterad: interrupted by SIGTERM; finished work is kept"
WITH_TEACHER = ("agd-fd", "er", "scr", "ocm")
FIELDS = {"randumb": {"projection": 50}}
"""Values of methods that would take long with their defaults."""


@dataclass(frozen=True)
class Training:
    """One run that is killed again and again: a method, a stream, and how it is started."""

    method: str
    stream: str
    seed: int
    in_new_process: bool = False

    @property
    def name(self) -> str:
        """Return a name for messages."""
        return f"{self.method} on {self.stream}, seed {self.seed}"

    def start(self, out: Path, checkpoint_every: int, output: Path) -> Process:
        """Start or continue the run."""
        if self.stream == "live":
            return Fork(lambda: train_live(self.method, self.seed, out, checkpoint_every), output)
        argv = [*self.argv(out.parent), f"--out={out}", f"--checkpoint-every={checkpoint_every}"]
        return (start_command if self.in_new_process else fork_command)(argv, output)

    def argv(self, folder: Path) -> list[str]:
        """Return the command without the options of its output."""
        encoder = "resnet18" if self.seed % 8 == 7 else "mlp"
        argv = ["train", self.method, f"--stream={self.stream}", f"--encoder={encoder}"]
        argv += [*DATA, *SMALL, f"--seed={self.seed}"]
        argv += [f"--{name}={value}" for name, value in FIELDS.get(self.method, {}).items()]
        if self.stream == "replay-file":
            argv.append(f"--file={folder / 'order.npz'}")
        elif self.stream not in ("domain", "long-tail"):
            argv.append("--tasks=2")
        if METHODS[self.method].trains == "on-stream" and self.seed % 2:
            argv.append("--test-then-train")
        if self.method in WITH_TEACHER and self.seed % 4 == 2:
            argv += ["--teacher=ema", "--predict-with=average"]
        return argv

    def prepare(self, folder: Path) -> None:
        """Write the order file that the stream reads, if it reads one."""
        folder.mkdir(parents=True)
        if self.stream == "replay-file":
            argv = ["stream", "blurry", *DATA, "--tasks=2", f"--save={folder / 'order.npz'}"]
            assert wait(fork_command(argv, folder / "order.txt")) == 0


def train_live(method: str, seed: int, out: Path, checkpoint_every: int) -> int:
    """Continue a live run; its feed repeats what came after the last checkpoint."""
    values = LIVE | FIELDS.get(method, {})
    config = live_config(method=method, seed=seed, encoder="mlp", **values)
    checkpoint = RunDirectory(out, config.id).newest_checkpoint
    step = load_checkpoint(checkpoint, config.id)["session"]["step"] if checkpoint else 0
    rng = np.random.default_rng(seed)
    images = rng.random((LIVE_STEPS, LIVE_BATCH, 8, 8)).astype(np.float32)
    labels = np.array([rng.integers(0, 2 + i // 4, LIVE_BATCH) for i in range(LIVE_STEPS)])
    feed = list(zip(images, labels, strict=True))
    run(config, out, Execution(threads=1), checkpoint_every, feed=feed[step:])
    return 0


class TrainingStorm:
    """Kills one training at random moments until a number of kills is reached."""

    def __init__(self, training: Training, folder: Path, rng: random.Random) -> None:
        self.training, self.folder, self.rng = training, folder, rng
        self.tally, self.rounds = Tally(), 0

    def run(self, kills: int) -> Tally:
        """Run uninterrupted once, then kill, continue and compare."""
        self.training.prepare(self.folder)
        started = time.perf_counter()
        code = wait(self.start("reference", NO_CHECKPOINTS))
        assert code == 0, (self.folder / "reference.txt").read_text()
        self.seconds = time.perf_counter() - started
        while self.tally.kills < kills and self.rounds < 2 * kills + 2:
            self.rounds += 1
            self.run_once(min(kills - self.tally.kills, MAX_KILLS_PER_RUN))
        shutil.rmtree(self.folder, ignore_errors=bool(self.tally.problems))
        return self.tally

    def start(self, name: str, checkpoint_every: int) -> Process:
        """Start the command with its own folder and output."""
        return self.training.start(
            self.folder / name, checkpoint_every, self.folder / f"{name}.txt"
        )

    def run_once(self, kills: int) -> None:
        """Kill a new run up to some times, let it finish, and compare it."""
        out, case = self.folder / f"killed-{self.rounds}", self.training.name
        killed = 0
        while killed < kills and not self.is_finished(out):
            killed += self.kill_one(out)
            for directory in run_directories(out):
                check_files(directory, case, self.tally)
        code = wait(self.start(out.name, 1))
        output = self.folder / f"{out.name}.txt"
        check_output(output, case, self.tally)
        if code:
            self.tally.report("lost_records", case, output.read_text()[-1000:])
            return
        (directory,), (reference,) = map(run_directories, (out, self.folder / "reference"))
        check_finished(directory, reference, case, self.tally)
        if leftovers := list(directory.path.glob(".*.tmp")):
            self.tally.report("damaged_files", case, leftovers)

    def is_finished(self, out: Path) -> bool:
        """Return whether the run has a record."""
        return any(directory.record.exists() for directory in run_directories(out))

    def kill_one(self, out: Path) -> bool:
        """Start the command and send it a signal at a random moment; return whether it ended."""
        moment = self.rng.choices(("time", "step", "write", "end"), (5, 5, 3, 1))[0]
        number = signal.SIGTERM if self.rng.random() < 0.25 else signal.SIGKILL
        condition = self.choose_moment(moment, out)
        process = self.start(out.name, 1)
        wait(process, condition)
        process.send_signal(number)
        code = wait(process)
        was_killed = code in (-number, 128 + number)
        if was_killed:
            victim = "new process" if self.training.in_new_process else "fork"
            self.tally.count_kill(number, victim, moment)
        elif code != 0:
            self.tally.report("lost_records", self.training.name, f"exit code {code} after a kill")
        if code == 128 + number and not self.says_sentence(out):
            self.tally.report("tracebacks", self.training.name, "SIGTERM without its sentence")
        return was_killed

    def says_sentence(self, out: Path) -> bool:
        """Return whether the last line of the output says that SIGTERM interrupted the command."""
        lines = (self.folder / f"{out.name}.txt").read_text().splitlines()
        return self.training.stream == "live" or lines[-1].startswith(SENTENCE)

    def choose_moment(self, moment: str, out: Path) -> Callable[[], bool]:
        """Return a condition: a time, a step, a file being written, or the end of the run."""
        if moment == "time":
            until = time.monotonic() + self.rng.uniform(0, 1.2 * self.seconds)
            return lambda: time.monotonic() >= until
        if moment == "write":
            skipped = self.rng.randrange(4)
            return WriteWatcher(out, skipped)
        last = last_event(out)
        step = last[0] + self.rng.randint(1, 6)
        kind = "end" if moment == "end" else ""

        def has_come() -> bool:
            now = last_event(out)
            return now[1] == "end" if kind else now[0] >= step

        return has_come


class WriteWatcher:
    """Holds while the n-th temporary file that it sees is being written."""

    def __init__(self, out: Path, skipped: int) -> None:
        self.out, self.skipped = out, skipped
        self.seen: set[str] = {path.name for path in out.glob("*/.*.tmp")}

    def __call__(self) -> bool:
        """Return whether a new temporary file exists and enough of them were skipped."""
        new = {path.name for path in self.out.glob("*/.*.tmp")} - self.seen
        self.seen |= new
        self.skipped -= len(new)
        return bool(new) and self.skipped < 0


def last_event(out: Path) -> tuple[int, str]:
    """Return the step and the kind of the last complete event of the run in a folder."""
    for file in out.glob("*/events.jsonl"):
        lines = file.read_bytes().split(b"\n")[:-1]
        if lines:
            event = json.loads(lines[-1])
            return event["step"], event["event"]
    return 0, ""
