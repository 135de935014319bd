"""`clear`: one task after the other, and each end is announced."""

from dataclasses import dataclass

from sterad.data import Dataset
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.stream import Stream
from sterad.streams.tasks import TaskSplit, task_order


@STREAMS.register("clear")
@dataclass(frozen=True)
class Clear(TaskSplit):
    """Disjoint tasks, each shuffled; the last batch of a task may be smaller."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        tasks = self.split(dataset, seed)
        order, ends = task_order(dataset.train_labels, tasks, numpy_generator(seed, "stream"))
        return Stream(dataset, "clear", order, self.batch_size, tasks, ends)
