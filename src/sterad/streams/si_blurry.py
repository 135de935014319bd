"""`si-blurry`: i-blurry with random sizes, so that tasks differ in classes, images and blur.

J.-Y. Moon et al., "Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask
and Visual Prompt Tuning", ICCV 2023, https://arxiv.org/abs/2308.09303. Random cuts divide the
disjoint classes, the blurry classes and the number of blurred images among the tasks; some tasks
may get nothing. Classes that T does not divide are left out. The released code takes the blurred
images of a task from the front of the dataset, which on a dataset sorted by class means a few
classes only; here they are drawn at random.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.i_blurry import IBlurry
from sterad.streams.ranks import random_ranks
from sterad.streams.stream import Stream
from sterad.streams.tasks import check_tasks, home_tasks, shuffled_by_task

Counts = npt.NDArray[np.int64]


@STREAMS.register("si-blurry")
@dataclass(frozen=True)
class SiBlurry(IBlurry):
    """Disjoint and blurry classes in tasks of random sizes; no end is announced."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        rng, count = numpy_generator(seed, "stream"), self.task_count
        alone, mixed = self._classes(self.arrival(dataset, seed))
        cuts = [random_parts(len(group), count, rng) for group in (alone, mixed)]
        tasks = tuple(
            (*alone[a:b], *mixed[c:d])
            for a, b, c, d in zip(cuts[0][:-1], cuts[0][1:], cuts[1][:-1], cuts[1][1:], strict=True)
        )
        named = tuple(task for task in tasks if task)
        check_tasks(dataset, named)
        task = home_tasks(tasks, dataset.classes)[dataset.train_labels]
        self._blur(task, np.flatnonzero(np.isin(dataset.train_labels, mixed)), rng)
        there = np.flatnonzero(task >= 0)
        order = shuffled_by_task(there, task[there], rng)
        return Stream(dataset, "si-blurry", order, self.batch_size, named)

    def _classes(self, order: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the disjoint and the blurry classes, as many as the tasks divide."""
        classes, count = len(order), self.task_count
        if not 1 <= count <= classes:
            raise SteradError(
                f"{classes} classes cannot make {count} tasks: give tasks from 1 to {classes}"
            )
        alone = int(classes * (self.disjoint / 100)) // count * count
        return order[:alone], order[alone : classes - classes % count]

    def _blur(self, task: Counts, mixed: Counts, rng: np.random.Generator) -> None:
        """Take a random number of blurry images out of each task and deal as many back."""
        cuts = random_parts(int(len(mixed) * (self.blur / 100)), self.task_count, rng)
        taken = random_ranks(task[mixed], rng) < np.diff(cuts)[task[mixed]]
        pool = rng.permutation(mixed[taken])
        # A task may hold fewer images than it should give: then the last tasks get fewer back.
        task[pool] = np.searchsorted(cuts[1:], np.arange(len(pool)), side="right")


def random_parts(total: int, parts: int, rng: np.random.Generator) -> list[int]:
    """Return 0, `parts` - 1 uniform cuts in rising order, and `total`."""
    cuts = np.sort(rng.integers(0, max(1, total), parts - 1))
    return [0, *cuts.tolist(), total]
