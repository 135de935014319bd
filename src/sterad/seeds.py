"""Randomness as an argument: one generator per (seed, purpose), and no global state."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive(seed: int, purpose: str) -> int:
    """Return a 63-bit seed that depends on both arguments and on nothing else.

    >>> derive(0, "views") == derive(0, "views"), derive(0, "views") == derive(0, "memory")
    (True, False)
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, purpose: str, device: str | torch.device = "cpu") -> torch.Generator:
    """Return torch's generator for one purpose of one run."""
    return torch.Generator(device).manual_seed(derive(seed, purpose))


def numpy_generator(seed: int, purpose: str) -> np.random.Generator:
    """Return numpy's generator for one purpose of one run."""
    return np.random.default_rng(derive(seed, purpose))


@contextmanager
def use_generator(rng: torch.Generator) -> Iterator[None]:
    """Lend `rng` to code that can only read torch's global generator, then put that one back.

    torch's layers initialize themselves from the global generator; inside this block they draw from
    `rng` instead, and the global one is left as it was found.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.set_state(rng.get_state())
        yield
        rng.set_state(torch.default_generator.get_state())
