"""How long datasets take to open and to feed: python benchmarks/datasets.py DATA [NAME ...].

`cold` decodes the official files into a cache of its own (with the processor seconds, which a busy
machine stretches less), `warm` maps what lies there, `batch` is a batch of ten in random order as a
stream feeds it, each image touched for the first time: median and mean.
"""

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sterad.data import DATASETS
from sterad.data.dataset_files import check
from sterad.data.sources import SOURCES
from sterad.streams.stream import Stream

BATCHES = 2000
GOALS = {"cold": 1.0, "warm": 0.5, "batch": 0.2e-3}
"""Seconds: cold for CIFAR-100, warm and batch for all."""


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(name: str, root: Path) -> dict[str, float]:
    """Return seconds of opening cold and warm, and of one batch."""
    described = DATASETS[name](root=root)  # type: ignore[call-arg]
    before = time.process_time()
    cold = seconds(described.load)
    processor = time.process_time() - before
    warm = min(seconds(described.load) for _ in range(3))
    data = described.load()
    order = np.random.default_rng(0).permutation(len(data.train_labels))[: 10 * BATCHES]
    stream = Stream(data, name, order, 10, (tuple(range(data.classes)),))
    steps = range(len(stream))
    feed = [seconds(partial(stream.batch, step)) for step in steps]
    return {
        "cold": cold,
        "processor": processor,
        "warm": warm,
        "batch": float(np.median(feed)),
        "mean": float(np.mean(feed)),
    }


def linked(root: Path, into: Path) -> Path:
    """Return a root with the same files and no cache."""
    for one in root.iterdir():
        if not one.name.startswith("."):
            (into / one.name).symlink_to(one.resolve())
    return into


def main() -> None:
    """Print one line for each dataset that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    names = given.names or [one for one in sorted(SOURCES) if check(one, given.root).there]
    scratch = Path(tempfile.mkdtemp())
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    try:
        (scratch / "root").mkdir()
        root = linked(given.root, scratch / "root")
        for name in names:
            found = measure(name, root)
            print(
                f"{name:14} cold {found['cold']:7.3f} s (processor {found['processor']:.3f} s)   "
                f"warm {1e3 * found['warm']:6.1f} ms   batch of 10 {1e3 * found['batch']:.4f} ms "
                f"(mean {1e3 * found['mean']:.4f})   "
                f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"
            )
    finally:
        shutil.rmtree(scratch)
    print(f"goals: cold {GOALS['cold']} s (cifar100), warm {GOALS['warm']} s, ", end="")
    print(f"batch {1e3 * GOALS['batch']:.1f} ms")


if __name__ == "__main__":
    main()
