"""Random generators: one per seed and purpose, and no global state."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive(seed: int, purpose: str) -> int:
    """Return a 63-bit seed that depends on both arguments only.

    >>> derive(0, "views") == derive(0, "views"), derive(0, "views") == derive(0, "memory")
    (True, False)
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, purpose: str, device: str | torch.device = "cpu") -> torch.Generator:
    """Return the torch generator of a purpose."""
    return torch.Generator(device).manual_seed(derive(seed, purpose))


def numpy_generator(seed: int, purpose: str) -> np.random.Generator:
    """Return the numpy generator of a purpose."""
    return np.random.default_rng(derive(seed, purpose))


@contextmanager
def use_generator(rng: torch.Generator) -> Iterator[None]:
    """Make torch's global generator draw from `rng` inside the block, then restore it.

    For code that has no generator argument, such as the initialization of layers.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.set_state(rng.get_state())
        yield
        rng.set_state(torch.default_generator.get_state())
