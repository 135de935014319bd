"""What part of a run's time its checkpoints take: whole runs of ER, on both widths.

python benchmarks/checkpoints.py

A stream of synthetic images of CIFAR's size, the paper's largest memory for it, and evaluations as
in any run. A part above the limit says so, and the exit code is 1.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sterad.experiments.checkpoint import CheckpointSchedule
from sterad.experiments.config import RunConfig
from sterad.experiments.run import run

LIMIT = 0.01

STEPS = {20: 400, 64: 150}
"""Steps of a run of each width, a minute and two on two cores."""
IMAGES = {"dataset": "synthetic", "image_size": 32, "channels": 3, "classes": 10}


def main() -> int:
    """Print a line a width and return the exit code."""
    missed = False
    costs: list[float] = []
    watch(costs)
    for width, steps in STEPS.items():
        costs.clear()
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as out:
            run(RunConfig.of(method="er", width=width, memory=5000, per_class=steps, **IMAGES), out)
        seconds = time.perf_counter() - began
        part = sum(costs) / seconds
        print(
            f"width {width}: {steps} steps in {seconds:.0f} s, {len(costs)} checkpoints in "
            f"{sum(costs):.2f} s, {part:.2%}{'  MISSED' * (part > LIMIT)}",
            flush=True,
        )
        missed |= part > LIMIT
    return int(missed)


def watch(costs: list[float]) -> None:
    """Let each checkpoint of this process note its seconds."""
    plain = CheckpointSchedule.writing

    @contextmanager
    def writing(pace: CheckpointSchedule) -> Iterator[None]:
        with plain(pace):
            yield
        costs.append(pace.cost)

    CheckpointSchedule.writing = writing  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
