"""`i-blurry` and `si-blurry`: disjoint classes, and blurry classes that also occur in other tasks.

`i-blurry`: H. Koh, D. Kim, J.-W. Ha and J. Choi, "Online Continual Learning on Class Incremental
Blurry Task Configuration with Anytime Inference", ICLR 2022, https://arxiv.org/abs/2110.10031. Of
each blurry class, M percent of the images are pooled over all blurry classes, shuffled and split
equally among all T tasks, including their own: M (T - 1) / T percent of such a class come in
other tasks. Where the counts do not divide, both kinds of classes are spread over the tasks as
evenly as possible.

`si-blurry`: J.-Y. Moon et al., "Online Class Incremental Learning on Stochastic Blurry Task
Boundary via Mask and Visual Prompt Tuning", ICCV 2023, https://arxiv.org/abs/2308.09303. Random
cuts divide the disjoint classes, the blurry classes and the number of blurred images among the
tasks; a task may be empty. The number of disjoint classes is rounded down to a multiple of T, and
the last classes that T does not divide are left out. The released code takes the blurred images of
a task from the front of the dataset, which on a dataset sorted by class means only a few classes;
here they are drawn at random.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS, random_ranks
from sterad.streams.stream import Stream
from sterad.streams.tasks import Tasks, TaskSplit, check_tasks, home_tasks, shuffle_within_tasks
from sterad.validation import PerCent

Indices = npt.NDArray[np.int64]


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
        blurry = np.isin(np.arange(dataset.classes), _blurry_classes(tasks, self.disjoint))
        moved = np.rint(np.bincount(labels, minlength=dataset.classes) * (self.blur / 100))
        pool = np.flatnonzero(blurry[labels] & (random_ranks(labels, rng) < moved[labels]))
        task[rng.permutation(pool)] = np.arange(len(pool)) * len(tasks) // max(1, len(pool))
        order = shuffle_within_tasks(np.arange(len(labels)), task, rng)
        return Stream(dataset, "i-blurry", order, self.batch_size, tasks)


@STREAMS.register("si-blurry")
@dataclass(frozen=True)
class SiBlurry(IBlurry):
    """The classes of i-blurry in tasks of random sizes; no end is announced."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        rng, count = numpy_generator(seed, "stream"), self.task_count
        alone, mixed = self._classes(self.arrival(dataset, seed))
        cuts = [random_cuts(len(group), count, rng) for group in (alone, mixed)]
        tasks = tuple(
            (*alone[a:b], *mixed[c:d])
            for a, b, c, d in zip(cuts[0][:-1], cuts[0][1:], cuts[1][:-1], cuts[1][1:], strict=True)
        )
        nonempty = tuple(task for task in tasks if task)
        check_tasks(dataset, nonempty)
        task = home_tasks(tasks, dataset.classes)[dataset.train_labels]
        self._blur(task, np.flatnonzero(np.isin(dataset.train_labels, mixed)), rng)
        used = np.flatnonzero(task >= 0)
        order = shuffle_within_tasks(used, task[used], rng)
        return Stream(dataset, "si-blurry", order, self.batch_size, nonempty)

    def _classes(self, order: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the disjoint and the blurry classes, each a multiple of the number of tasks."""
        classes, count = len(order), self.task_count
        if not 1 <= count <= classes:
            raise SteradError(
                f"{classes} classes cannot make {count} tasks: give tasks from 1 to {classes}"
            )
        alone = int(classes * (self.disjoint / 100)) // count * count
        return order[:alone], order[alone : classes - classes % count]

    def _blur(self, task: Indices, mixed: Indices, rng: np.random.Generator) -> None:
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


def _blurry_classes(tasks: Tasks, disjoint: float) -> Indices:
    """Return the blurry classes: all but the first classes of each task, which are disjoint."""
    total = round(sum(map(len, tasks)) * disjoint / 100)
    until = [total * number // len(tasks) for number in range(len(tasks) + 1)]
    first = np.diff(until).tolist()
    return np.array(
        [label for task, skip in zip(tasks, first, strict=True) for label in task[skip:]],
        dtype=np.int64,
    )
