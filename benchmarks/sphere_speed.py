"""Time of log_prob and sample of the von Mises-Fisher law beside SciPy and Bessel-based torch.

python benchmarks/sphere_speed.py [--points 1000000] [--rounds 3] [--dimensions 3 64 512]

All in float64 on one thread, in CPU seconds, in turn within each round. Points are in chunks, as
many coordinates would not fit into memory at once.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import scipy.stats
import torch
from implementations.bessel_vmf import BesselVonMisesFisher

from sterad.sphere import VonMisesFisher

DIMENSIONS = (3, 64, 512)
CHUNK_NUMBERS = 2**24
"""Coordinates in a chunk: 128 MB in float64."""


def build(dimension: int) -> dict[str, dict[str, Callable[[int], object]]]:
    """Return, by task and library, a function that handles so many points."""
    kappa, mean = float(dimension), torch.ones(dimension, dtype=torch.float64) / dimension**0.5
    ours, bessel = VonMisesFisher(mean, kappa), BesselVonMisesFisher(mean, kappa)
    theirs = scipy.stats.vonmises_fisher(mean.numpy(), kappa)
    generator, rng = torch.Generator().manual_seed(0), np.random.default_rng(0)
    torch.manual_seed(0)
    rows = ours.sample((CHUNK_NUMBERS // dimension,), generator=generator)
    array = rows.numpy()
    return {
        "log_prob": {
            "sterad": lambda n: ours.log_prob(rows[:n]),
            "torch, Bessel": lambda n: bessel.log_prob(rows[:n]),
            "SciPy": lambda n: theirs.logpdf(array[:n]),
        },
        "sample": {
            "sterad": lambda n: ours.sample((n,), generator=generator),
            "torch, Bessel": lambda n: bessel.sample(n),
            "SciPy": lambda n: theirs.rvs(n, random_state=rng),
        },
    }


def seconds(function: Callable[[int], object], points: int, chunk: int) -> float:
    """Return the CPU seconds for all points."""
    start = time.process_time()
    for first in range(0, points, chunk):
        function(min(chunk, points - first))
    return time.process_time() - start


def main() -> None:
    """Print a row for each task and dimension, with the median over rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print("| task | d | sterad | torch, Bessel | SciPy |\n|---|---|---|---|---|")
    for dimension in args.dimensions:
        chunk = CHUNK_NUMBERS // dimension
        for task, functions in build(dimension).items():
            times: dict[str, list[float]] = {name: [] for name in functions}
            for _ in range(args.rounds):
                for name, function in functions.items():
                    times[name].append(seconds(function, args.points, chunk))
            cells = [f"{statistics.median(values):.2f} s" for values in times.values()]
            print(f"| {task} | {dimension} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
