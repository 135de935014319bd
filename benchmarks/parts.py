"""Step time of the later methods and of each part on agd-fd, relative to the bare network.

python benchmarks/parts.py              all rows; the median ratio and its quartiles
python benchmarks/parts.py gsa chain    rows whose names contain one of these

IMAGE_SIZE (32), PRECISION (float32) and ROUNDS (12) are read from the environment. One thread,
width 20, nothing compiled, after an announced end of a task, in seconds of the processor. agd-fd
has one random view here: a part is a larger share of its step than with the default of five.
"""

import os
import sys
from typing import Any

from sterad.bench.measurements import measure_step
from sterad.bench.setup import BenchSetup
from sterad.bench.timing import Rounds
from sterad.engine.execution import Execution

SIZE = int(os.environ.get("IMAGE_SIZE", "32"))
PARTS: dict[str, dict[str, Any]] = {
    "teacher": {"teacher": "ema"},
    "chain_views": {"chain_views": 3},
    "stage_weight": {"stage_weight": 1.0},
    "flatten_weight": {"flatten_weight": 1.0},
    "preparatory_classes": {"preparatory_classes": 4},
    "view_size": {"view_size": 3 * SIZE // 4},
    "raw_view": {"raw_view": False},
}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("mkd", "ccl-dc", "mose", "gsa", "onpro")},
    "agd-fd": ("agd-fd", {"views": 1}),
    **{f"agd-fd, {name}": ("agd-fd", {"views": 1, **part}) for name, part in PARTS.items()},
}


def main(wanted: list[str]) -> None:
    """Print a row for each measurement."""
    precision: Any = os.environ.get("PRECISION", "float32")
    execution = Execution(threads=1, view_threads=1, precision=precision, compile=False)
    rounds = Rounds(int(os.environ.get("ROUNDS", "12")), uses_processor_time=True)
    setup = BenchSetup(image_size=SIZE, second_task=True)
    for name, (method, fields) in ROWS.items():
        if wanted and not any(one in name for one in wanted):
            continue
        cost = measure_step(setup, method, execution, rounds, **fields)
        images = f"{cost.trained_images} + {cost.forward_only_images}"
        times = f"{1000 * cost.seconds.median:.0f} ms, bare {1000 * cost.bare_seconds.median:.0f}"
        print(f"{name:30} {images:>10} images  {times:24} {cost.ratio}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
