"""Passes that leave no trace in the buffers of a network and in generators."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from sterad.engine import Engine


@contextmanager
def restored(engine: Engine, generators: Mapping[str, torch.Generator]) -> Iterator[None]:
    """Restore the buffers of the network and the states of generators after the block."""
    buffers = [(buffer, buffer.clone()) for buffer in engine.network.buffers()]
    states = [(rng, rng.get_state()) for rng in generators.values()]
    try:
        yield
    finally:
        for buffer, before in buffers:
            buffer.copy_(before)
        for rng, state in states:
            rng.set_state(state)
