"""`linear`: around each task end, the share of the task falls linearly while the next one rises.

After C. Zeno, I. Golan, E. Hoffer and D. Soudry, "Task-Agnostic Continual Learning Using Online
Variational Bayes with Fixed-Point Updates", 2021, https://arxiv.org/abs/2010.00373. There, tasks
are drawn with replacement: an image may come twice or never. Here every image comes once: each
image draws a time from the trapezoidal density of its task, and the images are sorted by time. The
densities of all tasks sum to one everywhere, so position and time agree. An overlap of 2 / β is
the β of the original.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.stream import Stream
from sterad.streams.tasks import TaskSplit, task_order
from sterad.validation import Share


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
