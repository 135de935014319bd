"""`i-blurry`: some classes keep to their task, a part of the others is spread over all tasks.

H. Koh, D. Kim, J.-W. Ha and J. Choi, "Online Continual Learning on Class Incremental Blurry Task
Configuration with Anytime Inference", ICLR 2022, https://arxiv.org/abs/2110.10031. Of each blurry
class M per cent of the images are taken out, pooled over all blurry classes, shuffled and dealt in
equal parts to all T tasks, home included: M (T - 1) / T per cent of such a class come elsewhere.
Where the counts do not divide, the classes of both kinds are as even over the tasks as they can be.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sterad.data import Dataset
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.ranks import random_ranks
from sterad.streams.stream import Stream
from sterad.streams.tasks import Tasks, TaskSplit, home_tasks, shuffled_by_task
from sterad.validation import PerCent


@STREAMS.register("i-blurry")
@dataclass(frozen=True)
class IBlurry(TaskSplit):
    """Disjoint classes and blurry ones, which also come in other tasks; no end is announced."""

    disjoint: PerCent = 50.0
    """Per cent of the classes that come in one task only."""
    blur: PerCent = 10.0
    """Per cent of the images of each other class that are dealt to all tasks."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        tasks, rng = self.split(dataset, seed), numpy_generator(seed, "stream")
        labels = dataset.train_labels
        task = home_tasks(tasks, dataset.classes)[labels]
        blurry = np.isin(np.arange(dataset.classes), _blurry_classes(tasks, self.disjoint))
        moved = np.rint(np.bincount(labels, minlength=dataset.classes) * (self.blur / 100))
        pool = np.flatnonzero(blurry[labels] & (random_ranks(labels, rng) < moved[labels]))
        task[rng.permutation(pool)] = np.arange(len(pool)) * len(tasks) // max(1, len(pool))
        order = shuffled_by_task(np.arange(len(labels)), task, rng)
        return Stream(dataset, "i-blurry", order, self.batch_size, tasks)


def _blurry_classes(tasks: Tasks, disjoint: float) -> npt.NDArray[np.int64]:
    """Return the classes that are not among the first, disjoint ones of their task."""
    total = round(sum(map(len, tasks)) * disjoint / 100)
    until = [total * number // len(tasks) for number in range(len(tasks) + 1)]
    first = np.diff(until).tolist()
    return np.array(
        [label for task, skip in zip(tasks, first, strict=True) for label in task[skip:]],
        dtype=np.int64,
    )
