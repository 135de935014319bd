"""`iid`: all images in one uniform order; the tasks only name the evaluations."""

from dataclasses import dataclass

from sterad.data import Dataset
from sterad.seeds import numpy_generator
from sterad.streams.description import STREAMS
from sterad.streams.stream import Stream
from sterad.streams.tasks import TaskSplit


@STREAMS.register("iid")
@dataclass(frozen=True)
class Iid(TaskSplit):
    """No tasks in time: what a method reaches when nothing invites it to forget."""

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` before any long tail."""
        tasks = self.split(dataset, seed)
        order = numpy_generator(seed, "stream").permutation(len(dataset.train_labels))
        return Stream(dataset, "iid", order, self.batch_size, tasks)
