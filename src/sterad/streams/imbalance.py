"""Imbalance: a stream thinned out so that its classes form a long tail.

The profile is exponential, as in K. Cao et al., "Learning Imbalanced Datasets with
Label-Distribution-Aware Margin Loss", 2019, https://arxiv.org/abs/1906.07413: of K classes the one
of rank r keeps the share imbalance^(-r / (K - 1)) of its images. Ranks are drawn from the seed and
do not follow the order of arrival: the shuffled case of X. Liu et al., "Long-Tailed Class
Incremental Learning", 2022, https://arxiv.org/abs/2210.00266. Test images stay as they are.
"""

import numpy as np
import numpy.typing as npt

from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.streams.ranks import random_ranks
from sterad.streams.stream import Stream


def imbalanced(stream: Stream, imbalance: float, seed: int) -> Stream:
    """Return `stream` without the images that the long tail leaves out; the others keep in step."""
    labels, rng = stream.dataset.train_labels, numpy_generator(seed, "imbalance")
    counts = np.bincount(labels, minlength=stream.classes)
    wanted = long_tail(counts, imbalance, rng)
    return stream.keeping(random_ranks(labels, rng) < wanted[labels])


def long_tail(
    counts: npt.NDArray[np.int64], imbalance: float, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return how many images of each class stay: all of the first rank, at least one of any.

    >>> long_tail(np.array([100, 100, 0, 100]), 100, np.random.default_rng(0)).tolist()
    [1, 100, 0, 10]
    """
    if not 1 <= imbalance < np.inf:
        raise SteradError(
            f"imbalance {imbalance} is below 1 or endless: say how many times as many images the "
            "most frequent class has as the rarest"
        )
    there = np.flatnonzero(counts)
    ranks = rng.permutation(len(there))
    shares = np.float64(imbalance) ** (-ranks / max(1, len(there) - 1))
    wanted = np.zeros_like(counts)
    wanted[there] = np.maximum(1, np.rint(counts[there] * shares))
    return wanted
