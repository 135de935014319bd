"""Time to load datasets and to read batches: python benchmarks/datasets.py DATA [NAME ...].

`cold` decodes the official files into an empty cache (also as CPU time, which depends less on other
processes), `warm` memory-maps the cache, `batch` reads ten images in random order, each for the
first time: median and mean.
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
GOALS_S = {"cold": 1.0, "warm": 0.5, "batch": 0.2e-3}
"""Goals: cold for CIFAR-100, warm and batch for all datasets."""


def seconds(work: Callable[[], object]) -> float:
    """Return the time of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(name: str, root: Path) -> dict[str, float]:
    """Return the times of a cold load, a warm load and a batch, in seconds."""
    description = DATASETS[name](root=root)  # type: ignore[call-arg]
    before = time.process_time()
    cold = seconds(description.load)
    cpu = time.process_time() - before
    warm = min(seconds(description.load) for _ in range(3))
    data = description.load()
    order = np.random.default_rng(0).permutation(len(data.train_labels))[: 10 * BATCHES]
    stream = Stream(data, name, order, 10, (tuple(range(data.classes)),))
    steps = range(len(stream))
    batch_times = [seconds(partial(stream.batch, step)) for step in steps]
    return {
        "cold": cold,
        "cpu": cpu,
        "warm": warm,
        "batch": float(np.median(batch_times)),
        "mean": float(np.mean(batch_times)),
    }


def link_files(root: Path, into: Path) -> Path:
    """Link the files of `root`, without its cache, in `into`, and return it."""
    for path in root.iterdir():
        if not path.name.startswith("."):
            (into / path.name).symlink_to(path.resolve())
    return into


def main() -> None:
    """Print one line for each dataset in the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = args.names or [name for name in sorted(SOURCES) if check(name, args.root).is_readable]
    scratch = Path(tempfile.mkdtemp())
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    try:
        (scratch / "root").mkdir()
        root = link_files(args.root, scratch / "root")
        for name in names:
            found = measure(name, root)
            print(
                f"{name:14} cold {found['cold']:7.3f} s (CPU {found['cpu']:.3f} s)   "
                f"warm {1e3 * found['warm']:6.1f} ms   batch of 10 {1e3 * found['batch']:.4f} ms "
                f"(mean {1e3 * found['mean']:.4f})   "
                f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"
            )
    finally:
        shutil.rmtree(scratch)
    print(f"goals: cold {GOALS_S['cold']} s (cifar100), warm {GOALS_S['warm']} s, ", end="")
    print(f"batch {1e3 * GOALS_S['batch']:.1f} ms")


if __name__ == "__main__":
    main()
