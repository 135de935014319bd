"""Streams of tasks that overlap: `blurry` and `linear`.

`blurry` is the clear stream shuffled locally: repeatedly draw i = floor(|N(0, scale²)|) and output
the i-th of the remaining images. The paper does not define the case of an i beyond the end. Its
released code draws again up to ten times; if it needed all ten redraws, it takes the first image,
whatever the tenth redraw was.

`linear`: around each task end, the share of the task falls linearly while the next one rises. After
C. Zeno, I. Golan, E. Hoffer and D. Soudry, "Task-Agnostic Continual Learning Using Online
Variational Bayes with Fixed-Point Updates", 2021, https://arxiv.org/abs/2010.00373. There, tasks
are drawn with replacement: an image may come twice or never. Here every image comes once: each
image draws a time from the trapezoidal density of its task, and the images are sorted by time. The
densities of all tasks sum to one everywhere, so position and time agree. An overlap of 2 / β is
the β of the original.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.stream import Stream
from sterad.streams.tasks import TaskSplit, task_order
from sterad.validation import Scale, Share

MAX_REDRAWS = 10
BLOCK_SIZE = 1 << 15
"""Images per block of the remaining images: removing one moves at most this many."""
DRAWS_PER_CALL = 1 << 16


@STREAMS.register("blurry")
@dataclass(frozen=True)
class Blurry(TaskSplit):
    """Tasks that overlap by a half-normal shuffle; no end is announced."""

    scale: Scale | None = None
    """Scale of the half-normal distribution, in images (default: set by the dataset)."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        if self.scale is None:
            raise SteradError("the blurry stream has no scale: give scale, in images")
        tasks = self.split(dataset, seed)
        rng = numpy_generator(seed, "stream")
        order, _ = task_order(dataset.train_labels, tasks, rng)
        order = half_normal_order(order, self.scale, rng)
        return Stream(dataset, "blurry", order, self.batch_size, tasks)


def half_normal_order(
    sequence: npt.NDArray[np.int64], scale: float, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return `sequence` shuffled locally by a half-normal distribution of `scale`."""
    if not 0 < scale < np.inf:
        raise SteradError(f"the scale {scale} of a blurry stream must be positive and finite")
    draws, remaining = _draw_indices(scale, len(sequence), rng), _make_blocks(len(sequence))
    places = np.fromiter(
        (_take(remaining, _next_index(draws, left)) for left in range(len(sequence), 0, -1)),
        dtype=np.int64,
        count=len(sequence),
    )
    return sequence[places]


def _draw_indices(scale: float, limit: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield floor(|N(0, scale²)|) without end, clipped to `limit`."""
    while True:
        with np.errstate(over="ignore"):
            distance = np.abs(rng.standard_normal(DRAWS_PER_CALL)) * scale
        yield from np.minimum(distance, limit).astype(np.int64).tolist()


def _next_index(draws: Iterator[int], left: int) -> int:
    index, redraws = next(draws), 0
    while index >= left and redraws < MAX_REDRAWS:
        index, redraws = next(draws), redraws + 1
    return 0 if redraws == MAX_REDRAWS else index


def _make_blocks(count: int) -> "list[array[int]]":
    """Return the numbers below `count` in blocks, in reverse: the first ones pop from the end.

    A removal moves the four-byte integers of an array at half the cost of a list's pointers.
    """
    backwards = np.arange(count, dtype=np.intc)[::-1].copy()
    return [
        array("i", backwards[at : at + BLOCK_SIZE].tobytes()) for at in range(0, count, BLOCK_SIZE)
    ]


def _take(remaining: "list[array[int]]", index: int) -> int:
    """Remove and return the `index`-th number from the front."""
    at = -1
    while index >= len(remaining[at]):
        index -= len(remaining[at])
        at -= 1
    taken = remaining[at].pop(-1 - index)
    if not remaining[at]:
        del remaining[at]
    return taken


@STREAMS.register("linear")
@dataclass(frozen=True)
class Linear(TaskSplit):
    """Tasks that overlap with linearly changing shares; no end is announced."""

    overlap: Share = 0.5
    """Length of each transition as a fraction of the smaller of its two tasks, 0 to 1."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        tasks, rng = self.split(dataset, seed), numpy_generator(seed, "stream")
        order, ends = task_order(dataset.train_labels, tasks, rng)
        times = trapezoid_times(ends, self.overlap, rng)
        order = order[np.argsort(times, kind="stable")]
        return Stream(dataset, "linear", order, self.batch_size, tasks)


def trapezoid_times(
    ends: tuple[int, ...], overlap: float, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return a time for each image of consecutive tasks that end at `ends`.

    Times are uniform between the start and the end of the task, then reshaped near them: times
    within h of an end are spread over h on both sides of it, with a density that falls to zero.
    """
    sizes = np.diff([0, *ends])
    halves = [0.0, *(overlap * min(a, b) / 2 for a, b in pairwise(sizes.tolist())), 0.0]
    times = [
        _add_ramps(end - size * rng.random(size), end - size, end, halves[at], halves[at + 1])
        for at, (size, end) in enumerate(zip(sizes.tolist(), ends, strict=True))
    ]
    return np.concatenate(times)


def _add_ramps(
    times: npt.NDArray[np.float64], start: int, end: int, rising: float, falling: float
) -> npt.NDArray[np.float64]:
    """Map uniform `times` in [start, end], in place, to ramps of half-lengths rising, falling."""
    late, early = times > end - falling, times < start + rising
    left = (end - times[late]) / max(falling, 1e-300)
    times[late] = end + falling - 2 * falling * np.sqrt(left)
    past = (times[early] - start) / max(rising, 1e-300)
    times[early] = start - rising + 2 * rising * np.sqrt(past)
    return times
