"""The time to order a million images and to read batches from a memory-mapped file.

python benchmarks/streams.py [IMAGES]

CPU time, the best of three. A time above its limit prints MISSED, and the exit code is 1.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sterad.data import Dataset
from sterad.streams import STREAMS, Clear, Stream

ORDER_LIMIT_S = 2.0
"""Maximum seconds to order a million images."""
BATCH_LIMIT_MS = 0.2
"""Maximum milliseconds to read ten color images of 32x32 pixels."""


def main(images: int = 1_000_000) -> int:
    """Print all results and return the exit code."""
    are_met = [
        *(_order(name, images) for name in STREAMS if name not in ("replay-file", "live")),
        _batches(),
    ]
    are_met.append(_growth(images))
    return 0 if all(are_met) else 1


def _order(name: str, images: int) -> bool:
    seconds = _best(lambda: _open(name, images))
    return _check_limit(f"order of {images:,} images, {name}", seconds, ORDER_LIMIT_S, "s")


def _growth(images: int) -> bool:
    """Check that twice the images take little more than twice the time."""
    half, whole = (
        _best(lambda: _open("blurry", images // 2)),
        _best(lambda: _open("blurry", images)),
    )
    return _check_limit("blurry order, time for twice the images", whole / half, 2.6, "x")


def _batches(images: int = 50_000) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        pixels = np.random.default_rng(0).integers(0, 256, (images, 3, 32, 32), np.uint8)
        np.save(path, pixels)
        stream = Clear(tasks=5).open(_dataset(np.load(path, mmap_mode="r")), seed=0)
        seconds = _best(lambda: _read(stream))
    return _check_limit(
        "batch of 10, memory-mapped", 1000 * seconds / len(stream), BATCH_LIMIT_MS, "ms"
    )


def _read(stream: Stream) -> None:
    for step in range(len(stream)):
        stream.batch(step)


def _open(name: str, images: int) -> Stream:
    defaults: dict[str, Any] = {"tasks": 10, "scale": 1500.0}
    known = STREAMS[name].__dataclass_fields__
    description = STREAMS[name](**{key: defaults[key] for key in defaults if key in known})
    return description.open(_dataset(np.zeros((images, 1, 1, 1), np.uint8)), seed=0)


def _dataset(images: Any) -> Dataset:
    labels = np.arange(len(images)) % 100
    names = tuple(map(str, range(100)))
    return Dataset("bench", images, labels, images[:100], np.arange(100), names, flip=False)


def _best(work: Callable[[], object], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _check_limit(what: str, value: float, limit: float, unit: str) -> bool:
    is_met = value <= limit
    print(f"{what:45} {value:8.3f} {unit:2} limit {limit:g}{'' if is_met else '  MISSED'}")
    return is_met


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
