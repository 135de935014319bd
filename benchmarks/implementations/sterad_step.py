"""A method of sterad on one of its streams.

The third argument is the method: er or agd-fd. The process is set up as `sterad train` does it; the
environment variable PRECISION overrides the default precision.
"""

import os
import sys
from collections.abc import Callable
from itertools import cycle

import torch
from workload import (
    BATCH,
    CLASSES,
    ENCODERS,
    MEMORY,
    MEMORY_BATCH,
    SEEN,
    SGD,
    SHAPE,
    pixels,
    run_on_request,
    seconds,
)

from sterad.data import Dataset
from sterad.engine.execution import Execution
from sterad.methods import METHODS, Problem, build_learner
from sterad.streams import Iid

VALUES = {"er": {"augmentation": "partial", **SGD}, "agd-fd": {}}


def set_up(name: str) -> Callable[[int], tuple[float, float]]:
    """Fill the memory and return a function that runs steps and returns their time."""
    chosen = Execution.from_options(
        device="cpu", threads=torch.get_num_threads(), precision=os.environ.get("PRECISION")
    )
    encoder, width = ENCODERS[name]
    images, labels = pixels()
    dataset = Dataset.from_arrays(images, labels, images[:1], labels[:1], flip=True)
    stream = Iid(tasks=1, batch_size=BATCH).open(dataset, seed=0)
    method = METHODS[sys.argv[3]]
    learner = build_learner(
        method,
        method.Config(memory_batch=MEMORY_BATCH, **VALUES[sys.argv[3]]),
        Problem(
            SHAPE,
            CLASSES,
            MEMORY,
            flip=True,
            encoder=encoder,
            width=width,
            execution=chosen,
        ),
    )
    learner.problem.execution.apply()
    batches = map(stream.batch, cycle(range(len(stream))))
    for _ in range(SEEN // BATCH):
        learner.memory.update(next(batches))
    return lambda steps: seconds(lambda: [learner.observe(next(batches)) for _ in range(steps)])


if __name__ == "__main__":
    run_on_request(set_up)
