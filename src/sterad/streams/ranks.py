"""Ranks: each image's place in a random line of its own class."""

import numpy as np
import numpy.typing as npt


def random_ranks(labels: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the place of each image, from 0, in a random order of the images of its class.

    >>> random_ranks(np.array([7, 7, 3, 7]), np.random.default_rng(0))[2]
    np.int64(0)
    """
    shuffled = rng.permutation(len(labels))
    lined_up = shuffled[np.argsort(labels[shuffled], kind="stable")]
    in_line = labels[lined_up]
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[lined_up] = np.arange(len(labels)) - np.searchsorted(in_line, in_line)
    return ranks
