"""`linear`: around each end of a task its share falls in a straight line while the next one rises.

After C. Zeno, I. Golan, E. Hoffer and D. Soudry, "Task-Agnostic Continual Learning Using Online
Variational Bayes with Fixed-Point Updates", 2021, https://arxiv.org/abs/2010.00373, where tasks are
drawn with replacement: an image may come twice or never. Here every image comes once. Each draws
its time from the trapezium of its task, and the times are sorted; as the trapezia add up to one
everywhere, position and time agree. An overlap of 2 / β is the β of the original.
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
    """Tasks that fade into each other along straight lines; no end is announced."""

    overlap: Share = 0.5
    """Length of each transition, as a share of the smaller of its two tasks: 0 to 1."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        tasks, rng = self.split(dataset, seed), numpy_generator(seed, "stream")
        order, ends = task_order(dataset.train_labels, tasks, rng)
        times = trapezium_times(ends, self.overlap, rng)
        order = order[np.argsort(times, kind="stable")]
        return Stream(dataset, "linear", order, self.batch_size, tasks)


def trapezium_times(
    ends: tuple[int, ...], overlap: float, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return a time for each image of tasks that end at `ends`, one task after the other.

    Uniform times in the task's own stretch are bent where a transition reaches into it: what lay
    within h of an end spreads over h on both sides of it, with a density that falls to zero.
    """
    sizes = np.diff([0, *ends])
    halves = [0.0, *(overlap * min(a, b) / 2 for a, b in pairwise(sizes.tolist())), 0.0]
    times = [
        _bent(end - size * rng.random(size), end - size, end, halves[at], halves[at + 1])
        for at, (size, end) in enumerate(zip(sizes.tolist(), ends, strict=True))
    ]
    return np.concatenate(times)


def _bent(
    times: npt.NDArray[np.float64], start: int, end: int, rising: float, falling: float
) -> npt.NDArray[np.float64]:
    """Return uniform `times` of [start, end] bent to ramps of half-lengths `rising`, `falling`."""
    late, early = times > end - falling, times < start + rising
    left = (end - times[late]) / max(falling, 1e-300)
    times[late] = end + falling - 2 * falling * np.sqrt(left)
    past = (times[early] - start) / max(rising, 1e-300)
    times[early] = start - rising + 2 * rising * np.sqrt(past)
    return times
