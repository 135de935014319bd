"""Speed of two workers with one thread each, relative to one worker with two threads.

python benchmarks/workers.py [ROUNDS]

Each round measures both on the same runs of ER, one after the other, so that other load on the
machine affects both. The exit code is 1 if the median ratio is below the limit. It needs two idle
cores.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.launchers import Job, Local
from sterad.threads import cores

MIN_SPEEDUP = 1.35
"""1.4 was measured with bare networks."""
RUNS = 4
VALUES = {
    "method": "er",
    "views": 1,
    "width": 20,
    "dataset": "synthetic",
    "image_size": 32,
    "channels": 3,
    "classes": 10,
    "per_class": 60,
    "tasks": 5,
    "memory": 200,
    "anytime": 1,
}


def main(rounds: int = 3) -> int:
    """Print the seconds of each round and the median speedup; return the exit code."""
    if cores() < 2:
        print(f"two workers need two cores and this process may use {cores()}")
        return 1
    pairs = [
        (_measure_seconds(workers=1, threads=2), _measure_seconds(2, 1)) for _ in range(rounds)
    ]
    for threads, workers in pairs:
        print(f"one worker with two threads {threads:6.1f} s, two workers {workers:6.1f} s")
    speedup = statistics.median(threads / workers for threads, workers in pairs)
    passed = speedup >= MIN_SPEEDUP
    verdict = "" if passed else "  MISSED"
    print(f"two workers are {speedup:.2f} times as fast, limit {MIN_SPEEDUP}{verdict}")
    return 0 if passed else 1


def _measure_seconds(workers: int, threads: int) -> float:
    with tempfile.TemporaryDirectory() as out:
        execution = Execution(threads=threads)
        configs = [RunConfig.of(**VALUES, seed=seed) for seed in range(RUNS)]
        jobs = [Job(config, Path(out), execution, 10_000) for config in configs]
        started = time.perf_counter()
        for outcome in Local(workers).launch(jobs, lambda run, event: None):
            if outcome.error is not None:
                raise SystemExit(outcome.error)
        return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
