"""`blurry`: the clear stream shuffled locally, so that neighbouring tasks overlap.

Repeatedly draw i = floor(|N(0, scale²)|) and let the i-th of the images still waiting come next.
The paper does not say what an i beyond the end means; its released code draws again up to ten
times and takes the first image when it had to do so ten times, whatever the tenth gave.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.stream import Stream
from sterad.streams.tasks import TaskSplit, task_order
from sterad.validation import Scale

REDRAWS = 10
BLOCK = 1 << 15
"""Images per block of the waiting line: taking one out moves at most this many."""
DRAWS_AT_ONCE = 1 << 16


@STREAMS.register("blurry")
@dataclass(frozen=True)
class Blurry(TaskSplit):
    """Tasks that run into each other; no end is announced."""

    scale: Scale | None = None
    """How far the half-normal law reaches, in images; by default the dataset's own."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        if self.scale is None:
            raise SteradError("the scale of the blurry stream is open: give scale, in images")
        tasks = self.split(dataset, seed)
        rng = numpy_generator(seed, "stream")
        order, _ = task_order(dataset.train_labels, tasks, rng)
        order = half_normal_order(order, self.scale, rng)
        return Stream(dataset, "blurry", order, self.batch_size, tasks)


def half_normal_order(
    sequence: npt.NDArray[np.int64], scale: float, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return `sequence` shuffled locally by the half-normal law of `scale`."""
    if not 0 < scale < np.inf:
        raise SteradError(f"the scale {scale} of a blurry stream must be positive and finite")
    draws, waiting = _draws(scale, len(sequence), rng), _blocks(len(sequence))
    places = np.fromiter(
        (_take(waiting, _index(draws, left)) for left in range(len(sequence), 0, -1)),
        dtype=np.int64,
        count=len(sequence),
    )
    return sequence[places]


def _draws(scale: float, limit: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield floor(|N(0, scale²)|) without end; what lies beyond `limit` is cut to it."""
    while True:
        with np.errstate(over="ignore"):
            reach = np.abs(rng.standard_normal(DRAWS_AT_ONCE)) * scale
        yield from np.minimum(reach, limit).astype(np.int64).tolist()


def _index(draws: Iterator[int], left: int) -> int:
    index, redraws = next(draws), 0
    while index >= left and redraws < REDRAWS:
        index, redraws = next(draws), redraws + 1
    return 0 if redraws == REDRAWS else index


def _blocks(count: int) -> "list[array[int]]":
    """Return the places of a waiting line back to front, in blocks: its front pops cheaply.

    Integers of four bytes side by side move at half the cost of a list's pointers.
    """
    backwards = np.arange(count, dtype=np.intc)[::-1].copy()
    return [array("i", backwards[at : at + BLOCK].tobytes()) for at in range(0, count, BLOCK)]


def _take(waiting: "list[array[int]]", index: int) -> int:
    """Take out and return the `index`-th from the front."""
    at = -1
    while index >= len(waiting[at]):
        index -= len(waiting[at])
        at -= 1
    taken = waiting[at].pop(-1 - index)
    if not waiting[at]:
        del waiting[at]
    return taken
