"""Speed of the learners on features, on one core, beside a loop in numpy and learners of river.

python benchmarks/feature_learners.py            rows per second, then 2,000 classes one by one
python benchmarks/feature_learners.py 20000      with fewer rows than 100,000

Rows have 384 float32 features and belong to 100 classes. The numpy loop keeps the same statistics
in float64 with one matrix product per batch, as one writes it by hand; times exclude the solution
for the scores, which both need once before a prediction. Rounds are interleaved, the median counts,
and times are those of the processor, so that other load matters little.
"""

import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sterad.experiments.session import peak_memory_bytes
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.streams import Batch

FEATURES, CLASSES, MANY_CLASSES = 384, 100, 2000
ROUNDS = 3
ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Environment of the process; numpy reads it when it is imported."""
RIVER_ROWS = 300
"""Learners of river take rows one by one in Python."""
RIVER = ("naive_bayes.GaussianNB", "linear_model.SoftmaxRegression")
"""River has no LDA; these are its Gaussian and its linear learner for several classes."""
Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Learn = Callable[[Floats, Labels], None]


def make_rows(count: int) -> tuple[Floats, Labels]:
    """Return normal rows around one mean per class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, count)
    x = rng.standard_normal((count, FEATURES), np.float32)
    return x + rng.standard_normal((CLASSES, FEATURES), np.float32)[y], y


def build(method: str) -> Learner:
    """Return a learner on features without a declared number of classes."""
    problem = Problem((FEATURES,), None, memory=0, encoder="flatten")
    return build_learner(method, METHODS[method].Config(), problem)


def sterad_loop(method: str) -> Learn:
    """Return a function that observes a batch."""
    learner = build(method)

    def learn(x: Floats, y: Labels) -> None:
        learner.observe(Batch(torch.from_numpy(x), torch.from_numpy(y)))

    return learn


def numpy_slda() -> Learn:
    """Return a hand-written update of counts, means and the scatter within classes."""
    counts, means = np.zeros(CLASSES), np.zeros((CLASSES, FEATURES))
    scatter = np.zeros((FEATURES, FEATURES))

    def learn(x: Floats, y: Labels) -> None:
        rows = x.astype(np.float64)
        before = rows - means[y]
        np.add.at(counts, y, 1)
        np.add.at(means, y, before / counts[y, None])
        scatter.__iadd__(before.T @ (rows - means[y]))

    return learn


def numpy_ridge() -> Learn:
    """Return a hand-written update of the sums hᵀh and hᵀy; numpy computes half of hᵀh."""
    gram, sums = np.zeros((FEATURES, FEATURES)), np.zeros((CLASSES, FEATURES))

    def learn(x: Floats, y: Labels) -> None:
        rows = x.astype(np.float64)
        gram.__iadd__(rows.T @ rows)
        np.add.at(sums, y, rows)

    return learn


def rows_per_second(learn: Learn, x: Floats, y: Labels, size: int) -> float:
    """Return the speed of one pass over all rows in batches."""
    started = time.process_time()
    for start in range(0, len(x), size):
        learn(x[start : start + size], y[start : start + size])
    return len(x) / (time.process_time() - started)


def compare(x: Floats, y: Labels) -> None:
    """Print the speeds of sterad and of numpy."""
    makers: dict[str, Callable[[], Learn]] = {
        "slda": lambda: sterad_loop("slda"),
        "slda in numpy": numpy_slda,
        "ridge": lambda: sterad_loop("ridge"),
        "ridge in numpy": numpy_ridge,
        "ncm": lambda: sterad_loop("ncm"),
    }
    print(f"{len(x):,} rows of {FEATURES} features, {CLASSES} classes, rows per second:")
    for size in (10, 100):
        speeds: dict[str, list[float]] = {name: [] for name in makers}
        for _ in range(ROUNDS):
            for name, make in makers.items():
                speeds[name].append(rows_per_second(make(), x, y, size))
        for name, found in speeds.items():
            print(f"  batches of {size:3}  {name:15} {statistics.median(found):10,.0f}")


def compare_river(x: Floats, y: Labels) -> None:
    """Print the speeds of river's learners, if it is installed."""
    try:
        importlib.import_module("river")
    except ImportError:
        print("river is not installed: pip install river adds its learners to this table")
        return
    rows = [dict(enumerate(row.tolist())) for row in x[:RIVER_ROWS]]
    for name in RIVER:
        module, kind = name.split(".")
        learner: Any = getattr(importlib.import_module(f"river.{module}"), kind)()
        started = time.process_time()
        for row, label in zip(rows, y.tolist(), strict=False):
            learner.learn_one(row, label)
        speed = len(rows) / (time.process_time() - started)
        print(f"  row by row       river {kind:17} {speed:10,.0f}   ({len(rows)} rows)")


def arriving_classes(method: str) -> None:
    """Print the cost of calls while classes arrive one after the other, a batch of 10 each."""
    learner, rng = build(method), np.random.default_rng(0)
    times: dict[str, list[float]] = {"observe": [], "first predict": [], "next predict": []}
    query = torch.from_numpy(rng.standard_normal((1, FEATURES), np.float32))
    for label in range(MANY_CLASSES):
        x = torch.from_numpy(rng.standard_normal((10, FEATURES), np.float32))
        batch = Batch(x, torch.full((10,), label))
        is_timed = (label + 1) % 100 > 90
        calls = [lambda batch=batch: learner.observe(batch), *[lambda: learner.predict(query)] * 2]
        for name, call in zip(times, calls if is_timed else calls[:1], strict=False):
            started = time.process_time()
            call()
            times[name] += [time.process_time() - started] if is_timed else []
        if label + 1 in (500, 1000, MANY_CLASSES):
            state = [t for t in learner.state_dict().values() if isinstance(t, torch.Tensor)]
            size = sum(t.nbytes for t in state) / 1e6
            shown = ", ".join(
                f"{name} {1000 * statistics.median(found[-9:]):.2f} ms"
                for name, found in times.items()
            )
            print(f"  {method:6} {label + 1:5} classes: {shown}, state {size:.1f} MB", flush=True)


def main(rows: str = "100000") -> None:
    """Print all tables."""
    if not os.environ.items() >= ONE_CORE.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_CORE)
    x, y = make_rows(int(rows))
    compare(x, y)
    compare_river(x, y)
    print(f"{MANY_CLASSES:,} classes one after the other, {FEATURES} features:")
    for method in ("ncm", "slda", "ridge"):
        arriving_classes(method)
    print(f"peak memory of the process: {peak_memory_bytes() / 1e6:.0f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
