"""The time to open datasets and to read batches: python benchmarks/datasets.py DATA [NAME ...].

`cold` decodes the official files into a new cache (CPU seconds depend less on other load), `warm`
maps the cache, `batch` reads ten images in random order, each for the first time: median and mean.
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
TARGETS_S = {"cold": 1.0, "warm": 0.5, "batch": 0.2e-3}
"""Target seconds: cold for CIFAR-100, warm and batch for all datasets."""


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(name: str, root: Path) -> dict[str, float]:
    """Return the seconds to open a dataset, cold and warm, and to read one batch."""
    description = DATASETS[name](root=root)  # type: ignore[call-arg]
    before = time.process_time()
    cold = seconds(description.load)
    cpu = time.process_time() - before
    warm = min(seconds(description.load) for _ in range(3))
    data = description.load()
    order = np.random.default_rng(0).permutation(len(data.train_labels))[: 10 * BATCHES]
    stream = Stream(data, name, order, 10, (tuple(range(data.classes)),))
    steps = range(len(stream))
    reads = [seconds(partial(stream.batch, step)) for step in steps]
    return {
        "cold": cold,
        "cpu": cpu,
        "warm": warm,
        "batch": float(np.median(reads)),
        "mean": float(np.mean(reads)),
    }


def link_files(root: Path, into: Path) -> Path:
    """Return a folder with links to the same files and no cache."""
    for path in root.iterdir():
        if not path.name.startswith("."):
            (into / path.name).symlink_to(path.resolve())
    return into


def main() -> None:
    """Print one line for each dataset that is present."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = args.names or [name for name in sorted(SOURCES) if check(name, args.root).there]
    scratch = Path(tempfile.mkdtemp())
    os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
    try:
        (scratch / "root").mkdir()
        root = link_files(args.root, scratch / "root")
        for name in names:
            result = measure(name, root)
            print(
                f"{name:14} cold {result['cold']:7.3f} s (CPU {result['cpu']:.3f} s)   "
                f"warm {1e3 * result['warm']:6.1f} ms   batch of 10 {1e3 * result['batch']:.4f} ms "
                f"(mean {1e3 * result['mean']:.4f})   "
                f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"
            )
    finally:
        shutil.rmtree(scratch)
    print(f"targets: cold {TARGETS_S['cold']} s (cifar100), warm {TARGETS_S['warm']} s, ", end="")
    print(f"batch {1e3 * TARGETS_S['batch']:.1f} ms")


if __name__ == "__main__":
    main()
