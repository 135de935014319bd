"""Memory and speed over many samples: `OnlineClassifier.partial_fit`, and a live run.

python -m tests.storm.soak --samples 10000000 --json soak.json
"""

import argparse
import contextlib
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

CLASSES, FEATURES, BATCH_SIZE = 5000, 8, 100
WARMUP_SHARE = 0.1
"""All classes have arrived before this share of the samples; memory may grow with classes."""
FIELDS: dict[str, Any] = {"memory_batch": 10}
MAX_GROWTH = 0.02
MEASUREMENTS = 10
PARTS = ("classifier", "live")
Pair = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


class Meter:
    """Measures resident memory and speed after each tenth of the samples.

    Speed is in samples per second of CPU time, which other processes on the machine do not change.
    """

    def __init__(self, samples: int) -> None:
        self.interval = samples // MEASUREMENTS
        self.samples, self.started = 0, time.process_time()
        self.rows: list[dict[str, float]] = []

    def count(self, samples: int) -> None:
        """Count samples that were learned."""
        self.samples += samples
        if self.samples >= self.interval * (len(self.rows) + 1):
            now = time.process_time()
            speed = self.interval / (now - self.started)
            mib = resident_bytes() / 2**20
            self.rows.append(
                {"samples": self.samples, "mib": round(mib, 2), "per_cpu_s": round(speed)}
            )
            print(self.rows[-1], file=sys.stderr, flush=True)
            self.started = time.process_time()

    def figures(self) -> dict[str, Any]:
        """Return growth from the first measurement to the last one, and all measurements."""
        growth = self.rows[-1]["mib"] / self.rows[0]["mib"] - 1
        return {"samples": self.samples, "growth": round(growth, 5), "measurements": self.rows}


def resident_bytes() -> int:
    """Return the resident size of this process, without free memory that glibc keeps for later."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def feed(samples: int, meter: Meter, seed: int = 0) -> Iterator[Pair]:
    """Yield batches of noisy class centers; new classes arrive during the warm-up."""
    rng = np.random.default_rng(seed)
    centers = rng.random((CLASSES, FEATURES), dtype=np.float32)
    warmup = WARMUP_SHARE * samples - 10 * BATCH_SIZE
    order = np.arange(CLASSES)
    for start in range(0, samples, BATCH_SIZE):
        known = min(CLASSES, 2 + int(CLASSES * (start + BATCH_SIZE) / warmup))
        labels = rng.integers(0, known, BATCH_SIZE)
        newest = order[max(0, known - BATCH_SIZE // 2) : known]  # each class arrives in time
        labels[: len(newest)] = newest
        noise = rng.random((BATCH_SIZE, FEATURES), dtype=np.float32)
        yield 0.8 * centers[labels] + 0.2 * noise, labels
        meter.count(BATCH_SIZE)


def soak_classifier(samples: int) -> dict[str, Any]:
    """Learn all samples with `partial_fit`."""
    from sterad import OnlineClassifier

    meter = Meter(samples)
    classifier = OnlineClassifier("er", 500, width=1, batch_size=BATCH_SIZE, **FIELDS)
    for x, y in feed(samples, meter):
        classifier.partial_fit(x, y)
    return meter.figures() | {"classes": len(classifier.classes_)}


def soak_live(samples: int) -> dict[str, Any]:
    """Learn all samples in a live run with checkpoints, events and a record."""
    from sterad.engine.execution import Execution
    from sterad.experiments.live import live_config
    from sterad.experiments.run import run

    meter = Meter(samples)
    config = live_config(method="er", memory=500, width=1, **FIELDS)
    with tempfile.TemporaryDirectory() as out:
        record = run(config, out, Execution(threads=1), feed=feed(samples, meter))
        files = [file.stat().st_size for file in Path(out).rglob("*") if file.is_file()]
    classes = len(record.stream.class_names)
    moments = {"moments": len(record.moments), "disk_mib": round(sum(files) / 2**20, 1)}
    return meter.figures() | {"classes": classes} | moments


def run_part(part: str, samples: int) -> dict[str, Any]:
    """Run a part in a new process, so that it does not reuse the memory of another."""
    command = [sys.executable, "-m", "tests.storm.soak", "--part", part, "--samples", str(samples)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    """Run both parts; the exit code is 1 if memory grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm.soak", description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--part", choices=PARTS, help="run only this part, in this process")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if options.part:
        soak = soak_classifier if options.part == "classifier" else soak_live
        print(json.dumps(soak(options.samples)))
        return 0
    figures = {part: run_part(part, options.samples) for part in PARTS}
    for part, values in figures.items():
        first, last = values["measurements"][0], values["measurements"][-1]
        sizes = f"{first['mib']:.1f} and {last['mib']:.1f} MiB ({values['growth']:+.2%})"
        speeds = f"{first['per_cpu_s']:,} and {last['per_cpu_s']:,} samples per CPU second"
        counts = f"{values['samples']:,} samples of {values['classes']:,} classes"
        print(f"{part}: {counts}; at first and at last: {sizes}, {speeds}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return int(any(values["growth"] > MAX_GROWTH for values in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
