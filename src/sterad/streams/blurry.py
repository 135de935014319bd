"""Streams of tasks that overlap: `blurry`, `linear`, `i-blurry` and `si-blurry`.

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

`i-blurry`: disjoint classes, and blurry classes that also occur in other tasks. After H. Koh,
D. Kim, J.-W. Ha and J. Choi, "Online Continual Learning on Class Incremental Blurry Task
Configuration with Anytime Inference", ICLR 2022, https://arxiv.org/abs/2110.10031. Of each blurry
class, M percent of the images are pooled over all blurry classes, shuffled and split equally among
all T tasks, including their own: M (T - 1) / T percent of such a class come in other tasks. Where
the counts do not divide, both kinds of classes are spread over the tasks as evenly as possible.

`si-blurry`: J.-Y. Moon et al., "Online Class Incremental Learning on Stochastic Blurry Task
Boundary via Mask and Visual Prompt Tuning", ICCV 2023, https://arxiv.org/abs/2308.09303. Random
cuts divide the disjoint classes, the blurry classes and the number of blurred images among the
tasks; a task may be empty. The number of disjoint classes is rounded down to a multiple of T, and
the last classes that T does not divide are left out. The released code takes the blurred images of
a task from the front of the dataset, which on a dataset sorted by class means only a few classes;
here they are drawn at random.
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
from sterad.streams.arrangement import STREAMS, random_ranks
from sterad.streams.stream import IntArray, Stream
from sterad.streams.tasks import (
    Tasks,
    TaskSplit,
    check_tasks,
    home_tasks,
    shuffle_within_tasks,
    task_order,
)
from sterad.validation import PerCent, Scale, Share

FloatArray = npt.NDArray[np.float64]
MAX_REDRAWS = 10
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


def half_normal_order(sequence: IntArray, scale: float, rng: np.random.Generator) -> IntArray:
    """Return `sequence` shuffled locally by a half-normal distribution of `scale` > 0."""
    draws, places = _draw_indices(scale, len(sequence), rng), []
    # In reverse, so that removing a number moves only the few before it in the sequence; four-byte
    # integers of an array move at half the cost of a list's pointers.
    remaining = array("i", np.arange(len(sequence), dtype=np.intc)[::-1].tobytes())
    for left in range(len(sequence), 0, -1):
        index, redraws = next(draws), 0
        while index >= left and redraws < MAX_REDRAWS:
            index, redraws = next(draws), redraws + 1
        places.append(remaining.pop(-1 if redraws == MAX_REDRAWS else -1 - index))
    return sequence[np.array(places, dtype=np.int64)]


def _draw_indices(scale: float, limit: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield floor(|N(0, scale²)|) without end, clipped to `limit`."""
    while True:
        with np.errstate(over="ignore"):
            distance = np.abs(rng.standard_normal(DRAWS_PER_CALL)) * scale
        yield from np.minimum(distance, limit).astype(np.int64).tolist()


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


def trapezoid_times(ends: tuple[int, ...], overlap: float, rng: np.random.Generator) -> FloatArray:
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
    times: FloatArray, start: int, end: int, rising: float, falling: float
) -> FloatArray:
    """Map uniform `times` in [start, end], in place, to ramps of half-lengths rising, falling."""
    late, early = times > end - falling, times < start + rising
    left = (end - times[late]) / max(falling, 1e-300)
    times[late] = end + falling - 2 * falling * np.sqrt(left)
    past = (times[early] - start) / max(rising, 1e-300)
    times[early] = start - rising + 2 * rising * np.sqrt(past)
    return times


@STREAMS.register("i-blurry")
@dataclass(frozen=True)
class IBlurry(TaskSplit):
    """Disjoint classes, and blurry classes that also occur in other tasks; no end is announced."""

    disjoint: PerCent = 50.0
    """Percentage of the classes that occur in one task only."""
    blur: PerCent = 10.0
    """Percentage of the images of each blurry class that are split among all tasks."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        tasks, rng = self.split(dataset, seed), numpy_generator(seed, "stream")
        labels = dataset.train_labels
        task = home_tasks(tasks, dataset.classes)[labels]
        blurry = ~_is_disjoint(tasks, self.disjoint)
        moved = np.rint(np.bincount(labels, minlength=dataset.classes) * (self.blur / 100))
        pool = np.flatnonzero(blurry[labels] & (random_ranks(labels, rng) < moved[labels]))
        task[rng.permutation(pool)] = np.arange(len(pool)) * len(tasks) // max(1, len(pool))
        order = shuffle_within_tasks(task, rng)
        return Stream(dataset, "i-blurry", order, self.batch_size, tasks)


def _is_disjoint(tasks: Tasks, percentage: float) -> npt.NDArray[np.bool_]:
    """Return whether each class is disjoint: the first ones of each task, spread evenly."""
    classes, count = sum(map(len, tasks)), len(tasks)
    total, is_disjoint = round(classes * percentage / 100), np.zeros(classes, dtype=np.bool_)
    for number, task in enumerate(tasks):
        first = total * (number + 1) // count - total * number // count
        is_disjoint[list(task[:first])] = True
    return is_disjoint


@STREAMS.register("si-blurry")
@dataclass(frozen=True)
class SiBlurry(IBlurry):
    """The classes of i-blurry in tasks of random sizes; no end is announced."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        rng, labels = numpy_generator(seed, "stream"), dataset.train_labels
        alone, mixed = self._classes(self.arrival(dataset, seed))
        parts = [
            [
                group[start:end]
                for start, end in pairwise(random_cuts(len(group), self.task_count, rng))
            ]
            for group in (alone, mixed)
        ]
        tasks = tuple(disjoint + blurry for disjoint, blurry in zip(*parts, strict=True))
        nonempty = tuple(task for task in tasks if task)
        check_tasks(dataset, nonempty)
        task = home_tasks(tasks, dataset.classes)[labels]
        self._blur(task, np.flatnonzero(np.isin(labels, mixed)), rng)
        used = np.flatnonzero(task >= 0)
        order = used[shuffle_within_tasks(task[used], rng)]
        return Stream(dataset, "si-blurry", order, self.batch_size, nonempty)

    def _classes(self, order: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the disjoint and the blurry classes, each a multiple of the number of tasks."""
        classes, count = len(order), self.task_count
        if count > classes:
            raise SteradError(
                f"{classes} classes cannot make {count} tasks: give tasks from 1 to {classes}"
            )
        alone = int(classes * (self.disjoint / 100)) // count * count
        return order[:alone], order[alone : classes - classes % count]

    def _blur(self, task: IntArray, mixed: IntArray, rng: np.random.Generator) -> None:
        """Take a random number of blurry images from each task and return as many, in place."""
        cuts = random_cuts(int(len(mixed) * (self.blur / 100)), self.task_count, rng)
        taken = random_ranks(task[mixed], rng) < np.diff(cuts)[task[mixed]]
        pool = rng.permutation(mixed[taken])
        # A task may hold fewer images than were to be taken: then the last tasks get fewer back.
        task[pool] = np.searchsorted(cuts[1:], np.arange(len(pool)), side="right")


def random_cuts(total: int, parts: int, rng: np.random.Generator) -> list[int]:
    """Return 0, `parts` - 1 uniform cuts in ascending order, and `total`."""
    cuts = np.sort(rng.integers(0, max(1, total), parts - 1))
    return [0, *cuts.tolist(), total]
