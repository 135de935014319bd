"""How long streams take: the order of a million images, and batches from a memory-mapped file.

python benchmarks/streams.py [IMAGES]

Times are of the processor, in seconds or milliseconds, the best of three; a line that misses its
limit says so, and the exit code is 1.
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

ORDER_LIMIT = 2.0
"""Seconds for the order of a million images."""
BATCH_LIMIT = 0.2
"""Milliseconds for a batch of ten images of 32x32 pixels in color."""


def main(images: int = 1_000_000) -> int:
    """Print all lines and return the exit code."""
    held = [
        *(_order(name, images) for name in STREAMS if name not in ("replay-file", "live")),
        _batches(),
    ]
    held.append(_growth(images))
    return 0 if all(held) else 1


def _order(name: str, images: int) -> bool:
    seconds = _best(lambda: _open(name, images))
    return _line(f"order of {images:,} images, {name}", seconds, ORDER_LIMIT, "s")


def _growth(images: int) -> bool:
    """Twice the images may take little more than twice the time."""
    half, whole = (
        _best(lambda: _open("blurry", images // 2)),
        _best(lambda: _open("blurry", images)),
    )
    return _line("blurry order, time for twice the images", whole / half, 2.6, "x")


def _batches(images: int = 50_000) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        pixels = np.random.default_rng(0).integers(0, 256, (images, 3, 32, 32), np.uint8)
        np.save(path, pixels)
        stream = Clear(tasks=5).open(_dataset(np.load(path, mmap_mode="r")), seed=0)
        seconds = _best(lambda: _read(stream))
    return _line("batch of 10, memory-mapped", 1000 * seconds / len(stream), BATCH_LIMIT, "ms")


def _read(stream: Stream) -> None:
    for step in range(len(stream)):
        stream.batch(step)


def _open(name: str, images: int) -> Stream:
    usual: dict[str, Any] = {"tasks": 10, "scale": 1500.0}
    known = STREAMS[name].__dataclass_fields__
    described = STREAMS[name](**{key: usual[key] for key in usual if key in known})
    return described.open(_dataset(np.zeros((images, 1, 1, 1), np.uint8)), seed=0)


def _dataset(images: Any) -> Dataset:
    labels = np.arange(len(images)) % 100
    names = tuple(map(str, range(100)))
    return Dataset("bench", images, labels, images[:100], np.arange(100), names, flip=False)


def _best(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def _line(what: str, value: float, limit: float, unit: str) -> bool:
    held = value <= limit
    print(f"{what:45} {value:8.3f} {unit:2} limit {limit:g}{'' if held else '  MISSED'}")
    return held


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
