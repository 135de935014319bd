"""Ours: experience replay by sterad's public names, fed by one of its streams.

The process is set up as `sterad train` does it.
"""

from collections.abc import Callable
from itertools import cycle

import torch
from work import (
    BATCH,
    CLASSES,
    ENCODERS,
    MEMORY,
    MEMORY_BATCH,
    SEEN,
    SGD,
    SHAPE,
    pixels,
    seconds,
    take_turns,
)

from sterad.data import Dataset
from sterad.experiments.execution import Execution
from sterad.methods import METHODS, Problem
from sterad.streams import Iid


def ready(name: str) -> Callable[[int], tuple[float, float]]:
    """Fill the memory and return the loop."""
    Execution.chosen("cpu", torch.get_num_threads()).settled(SHAPE).apply()
    images, labels = pixels()
    dataset = Dataset.from_arrays(images, labels, images[:1], labels[:1], flip=True)
    stream = Iid(tasks=1, batch_size=BATCH).open(dataset, seed=0)
    encoder, width = ENCODERS[name]
    er = METHODS["er"]
    learner = er(
        er.Config(recipe="partial", memory_batch=MEMORY_BATCH, **SGD),
        Problem(SHAPE, CLASSES, MEMORY, flip=True, encoder=encoder, width=width),
    )
    batches = map(stream.batch, cycle(range(len(stream))))
    for _ in range(SEEN // BATCH):
        learner.memory.update(next(batches))
    return lambda steps: seconds(lambda: [learner.observe(next(batches)) for _ in range(steps)])


if __name__ == "__main__":
    take_turns(ready)
