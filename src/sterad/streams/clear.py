"""`clear` and `iid`: tasks one after the other with announced ends, and one uniform order."""

from dataclasses import dataclass

from sterad.data import Dataset
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.stream import Stream
from sterad.streams.tasks import TaskSplit, task_order


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
