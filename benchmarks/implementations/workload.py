"""The work of every implementation, and the protocol of its process.

An implementation is a process, `python SCRIPT.py NETWORK THREADS`. It reads a number of steps from
standard input, runs them, and prints their wall and CPU seconds.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sterad.encoders import Encoder, build_network, make_encoder
from sterad.seeds import generator

SHAPE, CLASSES, IMAGES = (3, 32, 32), 100, 20_000
BATCH, MEMORY_BATCH, MEMORY, PAD = 10, 64, 1000, 4
SEEN = 10_000
"""Images of the stream before the first timed step."""
SGD = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4}
ENCODERS = {
    "linear": ("flatten", 64),
    "ResNet-18/20": ("resnet18", 20),
    "ResNet-18": ("resnet18", 64),
}
"""Encoder and width of each network; the head is linear."""


def pixels() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return random images (N, 3, 32, 32) and their labels."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (IMAGES, *SHAPE), np.uint8)
    return images, rng.integers(0, CLASSES, IMAGES)


def network(name: str) -> nn.Module:
    """Return the network that all implementations train."""
    return build_network(new_encoder(name), "linear", CLASSES, generator(0, "network"))


def new_encoder(name: str) -> Callable[[], Encoder]:
    """Return a function that makes the encoder of a network."""
    encoder, width = ENCODERS[name]
    return partial(make_encoder, encoder, SHAPE, width)


def run_on_request(set_up: Callable[[str], Callable[[int], tuple[float, float]]]) -> None:
    """Set up the network named on the command line, then run steps on request."""
    torch.set_num_threads(int(sys.argv[2]))
    steps = set_up(sys.argv[1])
    for line in sys.stdin:
        print(*steps(int(line)), flush=True)


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and CPU seconds of `work`."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor
