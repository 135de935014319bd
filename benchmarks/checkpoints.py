"""The share of a run's time that its checkpoints take, for complete runs of ER at two widths.

python benchmarks/checkpoints.py

Synthetic images of CIFAR's size, the largest memory of the paper for CIFAR-10, and the default
evaluations. A share above the limit prints MISSED, and the exit code is 1.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sterad.experiments.checkpoint import CheckpointSchedule
from sterad.experiments.config import RunConfig
from sterad.experiments.run import run

MAX_SHARE = 0.01
STEPS = {20: 400, 64: 150}
"""Steps of a run by width; one and two minutes on two cores."""
IMAGES = {"dataset": "synthetic", "image_size": 32, "channels": 3, "classes": 10}


def main() -> int:
    """Print one line per width and return the exit code."""
    missed = False
    costs: list[float] = []
    record_costs(costs)
    for width, steps in STEPS.items():
        costs.clear()
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as out:
            run(RunConfig.of(method="er", width=width, memory=5000, per_class=steps, **IMAGES), out)
        seconds = time.perf_counter() - start
        share = sum(costs) / seconds
        print(
            f"width {width}: {steps} steps in {seconds:.0f} s, {len(costs)} checkpoints in "
            f"{sum(costs):.2f} s, {share:.2%}{'  MISSED' * (share > MAX_SHARE)}",
            flush=True,
        )
        missed |= share > MAX_SHARE
    return int(missed)


def record_costs(costs: list[float]) -> None:
    """Append the seconds of every checkpoint to `costs`."""
    original = CheckpointSchedule.measure

    @contextmanager
    def measure(schedule: CheckpointSchedule) -> Iterator[None]:
        with original(schedule):
            yield
        costs.append(schedule.last_cost)

    CheckpointSchedule.measure = measure  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
