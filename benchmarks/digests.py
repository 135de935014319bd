"""Digests of the results of every method on digits, to check that a change keeps every bit.

python benchmarks/digests.py            prints the digests as JSON
python benchmarks/digests.py FILE       compares with an earlier output; exit code 1 if any differs

One thread, float32, not compiled. Digests differ between processors: compare on one machine.
"""

import dataclasses
import hashlib
import json
import sys
import tempfile
from pathlib import Path

from sterad import METHODS, RunConfig, run
from sterad.engine.execution import Execution
from sterad.experiments.run import provenance

EXECUTION = Execution(threads=1, view_threads=1, precision="float32", compile=False)
SMALL = {"dataset": "digits", "per_class": 40, "test_per_class": 20, "memory": 100, "seed": 0}
FEW_STEPS = {
    "gdumb": {"epochs": 2},
    "joint": {"epochs": 2},
    "ocm": {"memory_batch": 16},
    "randumb": {"projection": 200},
}


def digest(method: str, stream: str, out: Path) -> str:
    """Run a method and return a hash of its metrics and of its losses along the stream."""
    config = RunConfig.of(method=method, stream=stream, **SMALL, **FEW_STEPS.get(method, {}))
    record = run(config, out, EXECUTION)
    content = {
        "moments": [dataclasses.asdict(moment) for moment in record.moments],
        "matrix": record.accuracy_matrix,
        "final": record.final_average_accuracy,
        "losses": record.losses,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def main(argv: list[str]) -> int:
    """Print all digests, or compare them with those of a file."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{m} {s}" for m in METHODS for s in ("clear", "blurry")]
        found = {name: digest(*name.split(), Path(folder)) for name in names}
    if not argv:
        print(json.dumps({"machine": provenance()["machine"], "digests": found}, indent=1))
        return 0
    expected = json.loads(Path(argv[0]).read_text())["digests"]
    differing = [name for name in expected | found if expected.get(name) != found.get(name)]
    print("\n".join(f"differs: {name}" for name in differing) or f"{len(found)} digests are equal")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
