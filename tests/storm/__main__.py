"""The kill storm: processes are killed at random moments, and every result must stay the same.

python -m tests.storm --kills 1000 --json storm.json
"""

import argparse
import functools
import json
import math
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Before torch is imported: one thread, so that nothing is lost in a fork.
os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torch._dynamo  # torch's optimizers import it; here once for all forks

import sterad.cli.stream
import sterad.cli.train  # noqa: F401  # imported once, before the forks
from sterad.methods import METHODS
from tests.storm.checks import Tally
from tests.storm.launchers import LAUNCHER_STORMS, run_launcher_storm
from tests.storm.processes import Fork, wait
from tests.storm.training import STREAMS, Training, TrainingStorm

LAUNCHER_SHARE = 0.012
"""Share of the kills for each launcher and for the search: they take seconds each."""
NEW_PROCESS_SHARE = 0.04
KILLS_PER_TRAINING = 6
PROGRESS_INTERVAL_S = 30.0
NOT_LIVE = ("pfc",)
"""Methods that need the number of classes in advance."""
Task = Callable[[Path], Tally]


def plan(kills: int, seed: int, launchers: Sequence[str]) -> list[Task]:
    """Return the parts of a storm; together they reach the number of kills."""
    rng = random.Random(seed)
    each = max(1, round(kills * LAUNCHER_SHARE))
    tasks = [launcher_task(name, each, rng.randrange(2**32)) for name in launchers]
    left = kills - each * len(launchers)
    new = max(1, round(kills * NEW_PROCESS_SHARE))
    pairs = [
        (method, stream)
        for method in METHODS
        for stream in STREAMS
        if stream != "live" or (METHODS[method].trains == "on-stream" and method not in NOT_LIVE)
    ]
    rng.shuffle(pairs)
    number = 0
    while left > 0:
        method, stream = pairs[number % len(pairs)]
        is_new = new > 0 and stream != "live" and number % 3 == 0
        count = min(left, 2 if is_new else KILLS_PER_TRAINING)
        training = Training(method, stream, number, is_new)
        tasks.append(training_task(training, count, rng.randrange(2**32)))
        new -= count if is_new else 0
        left, number = left - count, number + 1
    return tasks


def training_task(training: Training, kills: int, seed: int) -> Task:
    """Return a part of the storm that kills one training."""
    return lambda folder: TrainingStorm(training, folder, random.Random(seed)).run(kills)


def launcher_task(name: str, kills: int, seed: int) -> Task:
    """Return a part of the storm that kills a launcher and its workers."""

    def run(folder: Path) -> Tally:
        result = folder.with_name(f"{folder.name}.json")

        def run_and_save() -> int:
            tally = run_launcher_storm(name, folder, random.Random(seed), kills)
            result.write_text(json.dumps(tally.to_dict()))
            return 0

        output = folder.with_name(f"{folder.name}.txt")
        code = wait(Fork(run_and_save, output), timeout=math.inf)
        if code == 0:
            return read_tally(result.read_text())
        return Tally(problems=[f"the storm of {name} failed: {output.read_text()[-3000:]}"])

    return run


def read_tally(text: str) -> Tally:
    """Return the tally of `Tally.to_dict`, as JSON."""
    values = json.loads(text)
    return Tally(**values | {name: set(values[name]) for name in ("methods", "streams")})


def run_share(tasks: Sequence[Task], folder: Path) -> int:
    """Run tasks one after the other; append the tally of each to a file."""
    for number, task in enumerate(tasks):
        try:
            tally = task(folder / str(number))
        except Exception:  # the other parts still run
            tally = Tally(problems=[traceback.format_exc()])
        with open(folder / "tallies.jsonl", "a") as file:
            file.write(json.dumps(tally.to_dict()) + "\n")
    return 0


def run_storm(tasks: Sequence[Task], workers: int, folder: Path) -> Tally:
    """Run all parts in forks of this process, and return the sum."""
    total = Tally()
    folders = [folder / f"worker-{number}" for number in range(workers)]
    shares: list[Fork] = []
    for number, share in enumerate(folders):
        share.mkdir(parents=True)
        function = functools.partial(run_share, tasks[number::workers], share)
        shares.append(Fork(function, share / "output.txt"))
    ended = threading.Event()  # the thread starts after the forks
    threading.Thread(target=show_progress, args=(folders, ended), daemon=True).start()
    for process, share in zip(shares, folders, strict=True):
        if wait(process, timeout=math.inf):
            total.problems.append((share / "output.txt").read_text()[-3000:])
        for tally in read_tallies(share):
            total.add(tally)
    ended.set()
    return total


def read_tallies(folder: Path) -> list[Tally]:
    """Return the tallies of the parts that one process has finished."""
    file = folder / "tallies.jsonl"
    return [read_tally(line) for line in file.read_text().splitlines()] if file.exists() else []


def show_progress(folders: Sequence[Path], ended: threading.Event) -> None:
    """Print the number of kills so far every half minute."""
    while not ended.wait(PROGRESS_INTERVAL_S):
        tallies = [tally for folder in folders for tally in read_tallies(folder)]
        problems = sum(len(tally.problems) for tally in tallies)
        print(f"{sum(tally.kills for tally in tallies)} kills, {problems} problems", flush=True)


def print_table(figures: dict[str, Any]) -> None:
    """Print one line per figure, then the problems."""
    for name, value in figures.items():
        if name == "problems":
            continue
        shown = f"{len(value)}: {', '.join(value)}" if isinstance(value, list) else value
        if isinstance(value, dict):
            shown = ", ".join(f"{count} {key}" for key, count in sorted(value.items()))
        print(f"{name.replace('_', ' '):20} {shown}")
    for problem in figures["problems"]:
        print(f"\n{problem}")


def main() -> int:
    """Run a storm; the exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--launchers", nargs="*", default=LAUNCHER_STORMS)
    parser.add_argument("--workers", type=int, default=2, help="parts that run at the same time")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--keep", type=Path, help="keep all files in this folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="storm-", ignore_cleanup_errors=True) as folder:
        place = options.keep or Path(folder)
        tasks = plan(options.kills, options.seed, options.launchers)
        tally = run_storm(tasks, options.workers, place)
    figures = tally.to_dict() | {"seed": options.seed, "seconds": round(time.monotonic() - started)}
    print_table(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if tally.problems or tally.kills < options.kills else 0


if __name__ == "__main__":
    sys.exit(main())
