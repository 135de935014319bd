"""Streams of tasks: the split of the classes into tasks, and the streams clear, iid, long-tail."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.streams.arrangement import STREAMS, Arrangement
from sterad.streams.stream import IntArray, Stream
from sterad.validation import Count, Range, Scale, field_names

Tasks = tuple[tuple[int, ...], ...]
"""The classes of each task, in the order of the stream."""


@dataclass(frozen=True)
class TaskSplit(Arrangement):
    """The base of all streams whose classes are split into tasks."""

    tasks: Count | None = None
    """Number of tasks, a divisor of the number of classes (default: set by the dataset)."""
    label_order: tuple[int, ...] | Literal["natural"] | None = None
    """All classes in the order in which they arrive, or natural: 0, 1, 2, ... (default: drawn from
    the seed)."""

    def split(self, dataset: Dataset, seed: int) -> Tasks:
        """Return the classes of each task; raise if a task has no training or no test images."""
        tasks = split_order(self.arrival(dataset, seed), self.task_count)
        check_tasks(dataset, tasks)
        return tasks

    def arrival(self, dataset: Dataset, seed: int) -> tuple[int, ...]:
        """Return all classes in the order in which they arrive."""
        order = self.label_order
        if order == "natural":
            return tuple(range(dataset.classes))
        order = label_order(dataset.classes, seed) if order is None else order
        if sorted(order) != list(range(dataset.classes)):
            raise SteradError(
                f"label_order {tuple(order)} must hold each class from 0 to "
                f"{dataset.classes - 1} once"
            )
        return order

    @property
    def task_count(self) -> int:
        """Return the number of tasks; raise if neither the user nor the dataset has set it."""
        if self.tasks is None:
            raise SteradError("tasks is not set: give a divisor of the number of classes as tasks")
        return self.tasks


@STREAMS.register("clear")
@dataclass(frozen=True)
class Clear(TaskSplit):
    """Disjoint tasks, shuffled inside, with announced ends.

    The last batch of a task may be smaller than the others.
    """

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        tasks = self.split(dataset, seed)
        order, ends = task_order(dataset.train_labels, tasks, numpy_generator(seed, "stream"))
        return Stream(dataset, "clear", order, self.batch_size, tasks, ends)


@STREAMS.register("iid")
@dataclass(frozen=True)
class Iid(TaskSplit):
    """All images in one uniform random order, without tasks in time.

    A baseline without forgetting. The tasks only define the evaluations.
    """

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        tasks = self.split(dataset, seed)
        order = numpy_generator(seed, "stream").permutation(len(dataset.train_labels))
        return Stream(dataset, "iid", order, self.batch_size, tasks)


@STREAMS.register("long-tail")
@dataclass(frozen=True)
class LongTail(TaskSplit):
    """Another stream, with its default options, whose class frequencies form a long tail.

    Every stream has the option `imbalance`, which does the same and keeps the other options.
    """

    imbalance: Annotated[float, Range(1, 1e6)] = 100.0
    """Ratio of the image counts of the most and the least frequent class."""
    base: str = "clear"
    """Name of the stream to thin out."""
    scale: Scale | None = None
    """Scale of a blurry base, in images (default: set by the dataset)."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        base_class = STREAMS[self.base]
        if issubclass(base_class, LongTail):
            raise SteradError(f"base {self.base!r} is a long tail itself: name another stream")
        shared = set(field_names(base_class)) & set(field_names(LongTail)) - {"imbalance"}
        base = base_class(**{name: getattr(self, name) for name in shared})
        return dataclasses.replace(base.open(dataset, seed), name=f"long-tail {self.base}")


def check_tasks(dataset: Dataset, tasks: Tasks) -> None:
    """Raise if a task has no training or no test images."""
    for part, labels in (("train", dataset.train_labels), ("test", dataset.test_labels)):
        present = np.bincount(labels, minlength=dataset.classes) > 0
        for task in tasks:
            if not present[list(task)].any():
                raise SteradError(
                    f"the task of the classes {task} has no {part} images: "
                    "add some, or give a smaller number of tasks"
                )


def label_order(classes: int, seed: int) -> tuple[int, ...]:
    """Return the order in which the classes arrive, shuffled by numpy's legacy generator.

    >>> label_order(10, seed=0)
    (2, 8, 4, 9, 1, 6, 7, 3, 0, 5)
    """
    if not 0 <= seed < 2**32:
        raise SteradError(f"the seed {seed} of a label order must be from 0 to 4294967295")
    order = np.arange(classes)
    np.random.RandomState(seed).shuffle(order)
    return tuple(order.tolist())


def split_order(order: Sequence[int], tasks: int) -> Tasks:
    """Cut the label order into `tasks` equal parts.

    >>> split_order((2, 0, 3, 1), 2)
    ((2, 0), (3, 1))
    """
    classes = len(order)
    if not 1 <= tasks <= classes or classes % tasks:
        divisors = [str(count) for count in range(1, classes + 1) if classes % count == 0]
        raise SteradError(
            f"{classes} classes cannot make {tasks} tasks of equal size: give tasks as one of "
            + ", ".join(divisors)
        )
    step = classes // tasks
    return tuple(tuple(order[at : at + step]) for at in range(0, classes, step))


def task_order(
    labels: IntArray, tasks: Tasks, rng: np.random.Generator
) -> tuple[IntArray, tuple[int, ...]]:
    """Return all indices in the order of their tasks, shuffled within each, and the task ends."""
    home = home_tasks(tasks, sum(map(len, tasks)))[labels]
    order = np.argsort(home, kind="stable")
    ends = np.cumsum(np.bincount(home, minlength=len(tasks)))
    for part in np.split(order, ends[:-1]):
        rng.shuffle(part)  # the parts are views of `order`
    return order, tuple(ends.tolist())


def home_tasks(tasks: Tasks, classes: int) -> IntArray:
    """Return the task of each class, (classes,); -1 for a class without a task.

    >>> home_tasks(((2, 0), (3,)), 4)
    array([ 0, -1,  0,  1])
    """
    home = np.full(classes, -1, dtype=np.int64)
    for number, task in enumerate(tasks):
        home[list(task)] = number
    return home


def shuffle_within_tasks(task: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the indices of the images sorted by their `task`, in random order within a task."""
    shuffled = rng.permutation(len(task))
    return shuffled[np.argsort(task[shuffled], kind="stable")]
