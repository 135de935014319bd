"""The time to write a report of many runs.

python benchmarks/report.py [RUNS] [CLASSES]

Synthetic records are written to a temporary folder first, which is not timed. A CPU time above the
limit prints MISSED, and the exit code is 1.
"""

import dataclasses
import itertools
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sterad.report.write import write_report
from sterad.results.record import Moment, RunRecord, StreamFacts

LIMIT_S = 10.0
"""Maximum CPU seconds for 2,000 runs."""
TASKS, MOMENTS, STRETCHES, STEPS = 10, 20, 100, 5000
METHODS = ("agd-fd", "vmf-fd", "er", "er-ace", "scr", "ocm", "dvc", "derpp", "gdumb", "agem")


def main(runs: int = 2000, classes: int = 20) -> int:
    """Print the result and return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grid = itertools.product(range(10), ("clear", "blurry"), range(200, 10_000, 500), METHODS)
        for seed, stream, memory, method in itertools.islice(grid, runs):
            run = make_record(method, stream, memory, seed, classes)
            (folder / run.id).mkdir()
            (folder / run.id / "record.json").write_text(run.to_json())
        start = time.process_time()
        page = write_report(folder)
        seconds, size = time.process_time() - start, page.stat().st_size / 2**20
    is_met = seconds <= LIMIT_S * runs / 2000
    print(
        f"report of {runs:,} runs of {classes} classes: {seconds:.1f} s, page {size:.1f} MiB, "
        f"limit {LIMIT_S * runs / 2000:g} s{'' if is_met else '  MISSED'}"
    )
    return 0 if is_met else 1


def make_record(method: str, stream: str, memory: int, seed: int, classes: int) -> RunRecord:
    """Return a record with random accuracies around a mean that depends on the method."""
    rng = np.random.default_rng([seed, memory, METHODS.index(method)])
    level = 0.3 + 0.03 * METHODS.index(method) + memory / 40_000
    moments = [_moment(rng, level, place, memory, classes) for place in range(1, MOMENTS + 1)]
    matrix = tuple(moment.cells for moment in moments)
    final = float(np.mean([cell for cell in matrix[-1] if cell is not None]))
    config = {
        "method": {"name": method, "lr": 0.01, "memory_batch": 64, "views": 1},
        "dataset": {"name": "synthetic", "per_class": 500},
        "stream": {"name": stream, "tasks": TASKS, "batch_size": 10},
        "memory": memory,
        "seed": seed,
    }
    return RunRecord(
        id=f"{method}-{stream}-{memory}-{seed}",
        config=config,
        stream=_stream(stream, classes),
        evaluations=tuple(f"task {task + 1}" for task in range(TASKS)),
        moments=tuple(moments),
        accuracy_matrix=matrix,
        final_average_accuracy=final,
        average_forgetting=float(rng.uniform(0, 0.3)),
        average_forgetting_released=float(rng.uniform(0, 0.3)),
        backward_transfer=-float(rng.uniform(0, 0.3)),
        anytime_accuracy=float(np.mean([moment.accuracy for moment in moments])),
        test_then_train_accuracy=None,
        seconds=float(60 * (1 + METHODS.index(method)) + rng.uniform()),
        images_per_second=2000.0,
        peak_memory_bytes=2**29,
        execution={"device": "cpu", "threads": 1},
        provenance={"sterad": "0.1.0"},
        images_per_step=74.0 * (1 + METHODS.index(method)),
        confusion=tuple(map(tuple, rng.integers(0, 9, (classes, classes)).tolist())),
        losses=tuple((25 * k, 1.5, 1.0 + float(rng.uniform())) for k in range(1, 200)),
    )


def _moment(
    rng: np.random.Generator, level: float, place: int, memory: int, classes: int
) -> Moment:
    begun = -(-place * TASKS // MOMENTS)
    cells = [float(np.clip(level + 0.02 * rng.normal(), 0, 1)) for _ in range(begun)]
    return Moment(
        step=STEPS * place // MOMENTS,
        samples=10 * STEPS * place // MOMENTS,
        boundary=place % (MOMENTS // TASKS) == 0,
        anytime=True,
        seen=classes * begun // TASKS,
        accuracy=float(np.mean(cells)),
        cells=(*cells, *[None] * (TASKS - begun)),
        memory=(memory // classes,) * classes,
    )


def _stream(name: str, classes: int) -> StreamFacts:
    tasks = tuple(tuple(map(int, part)) for part in np.array_split(np.arange(classes), TASKS))
    counts = np.zeros((STRETCHES, classes), int)
    for stretch in range(STRETCHES):
        counts[stretch, list(tasks[stretch * TASKS // STRETCHES])] = 500 * TASKS // classes
    facts = StreamFacts(
        name=name,
        samples=10 * STEPS,
        steps=STEPS,
        tasks=tasks,
        announced=True,
        class_names=tuple(f"class {c}" for c in range(classes)),
        proportions=tuple(map(tuple, counts.tolist())),
    )
    return dataclasses.replace(facts, announced=name == "clear")


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
