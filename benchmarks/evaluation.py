"""How much faster test images are answered than ten at a time by the network as it is trained.

python benchmarks/evaluation.py [--images 10000] [--threads 1]

Ours is `predict_all`: large batches, channels last, BatchNorm folded. The other is the bare network
without graphs: batches of ten, channels first. Both take turns on the same images, so that whatever
else the machine does slows both. A median ratio below the limit says so, and the exit code is 1.
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from sterad.encoders import Network
from sterad.evaluation.evaluate import predict_all
from sterad.methods import METHODS, Problem, Replay
from sterad.streams import Batch
from sterad.streams.pixels import to_unit

LIMIT = 2.0
"""Times as fast."""
SHAPE, WIDTH, CLASSES = (3, 32, 32), 20, 10
SMALL, TURN = 10, 200
"""Images of a batch of the other, and of a turn."""
Labels = npt.NDArray[np.int64]


def main(images: int, threads: int) -> int:
    """Print the ratios and their spread over the turns; return the exit code."""
    torch.set_num_threads(threads)
    made, rng = learner(), np.random.default_rng(0)
    bare = copy.deepcopy(made.network).eval()
    bare.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    turns, agreed = [], 0
    for turn in range(1 + max(2, images // TURN)):
        x = rng.integers(0, 256, (TURN, *SHAPE), np.uint8)
        ours, short = timed(partial(predict_all, made, x, np.arange(TURN)))
        theirs, long = timed(partial(ten_at_a_time, bare, x))
        if turn:  # the first one warms up
            turns.append(long / short)
            agreed += int((ours == theirs).sum())
    print(f"{agreed} of {TURN * len(turns)} answers agree")
    ratios = np.quantile(turns, (0.25, 0.5, 0.75), axis=0).T
    for clock, (low, ratio, high) in zip(("clock", "processor"), ratios, strict=True):
        print(f"by the {clock:9} {ratio:.2f} times as fast, quartiles {low:.2f} and {high:.2f}")
    held = bool(ratios[0, 1] >= LIMIT)
    print(f"limit {LIMIT:g} by the clock{'' if held else '  MISSED'}")
    return 0 if held else 1


def learner() -> Replay:
    """Return ER after some steps, so that its statistics are not those of the beginning."""
    method = METHODS["er"]
    made = method(method.Config(recipe="none"), Problem(SHAPE, CLASSES, 100, width=WIDTH))
    assert isinstance(made, Replay)
    rng = torch.Generator().manual_seed(0)
    for _ in range(5):
        made.observe(Batch(torch.rand(SMALL, *SHAPE, generator=rng), torch.arange(SMALL) % CLASSES))
    return made


@torch.no_grad()
def ten_at_a_time(network: Network, images: npt.NDArray[np.uint8]) -> Labels:
    """Return the answers of the bare network."""
    batches = to_unit(torch.from_numpy(images)).split(SMALL)
    answers: Labels = torch.cat([network(x).argmax(dim=1) for x in batches]).numpy()
    return answers


def timed(answer: Callable[[], Labels]) -> tuple[Labels, npt.NDArray[np.float64]]:
    """Return answers and the seconds that they took, by the clock and of the processor."""
    before = np.array([time.perf_counter(), time.process_time()])
    return answer(), np.array([time.perf_counter(), time.process_time()]) - before


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1)
    sys.exit(main(**vars(parser.parse_args())))
