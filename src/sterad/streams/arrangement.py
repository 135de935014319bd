"""Arrangement: the base of all streams whose order is drawn from a seed.

A stream is opened from a description, a frozen dataclass that is registered by name and whose
fields are the options of the stream. `Arrangement` adds the batch size and the class imbalance.

The imbalance is an exponential long tail, as in K. Cao et al., "Learning Imbalanced Datasets with
Label-Distribution-Aware Margin Loss", 2019, https://arxiv.org/abs/1906.07413: of K classes, the
class of rank r keeps the fraction imbalance^(-r / (K - 1)) of its images. Ranks are drawn from the
seed, independently of the order in which the classes arrive: the shuffled case of X. Liu et al.,
"Long-Tailed Class Incremental Learning", 2022, https://arxiv.org/abs/2210.00266. The test images
are not changed.
"""

import dataclasses
from dataclasses import Field, dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from sterad.data import Dataset
from sterad.registry import Registry
from sterad.seeds import numpy_generator
from sterad.streams.stream import IntArray, Stream
from sterad.validation import BatchSize, Range, check_fields


class Description(Protocol):
    """A frozen dataclass that defines the order of the images of any dataset."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream over the training images; equal arguments give equal streams."""


STREAMS: Registry[type[Description]] = Registry("stream", "sterad.streams")


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """The base of descriptions that draw an order from a seed; subclasses implement `arrange`."""

    batch_size: BatchSize = 10
    """Images per batch of the stream."""
    imbalance: Annotated[float, Range(1, 1e6)] | None = None
    """Ratio of the image counts of the most and the least frequent class (default: the dataset is
    not thinned out)."""

    def __post_init__(self) -> None:
        check_fields(self)

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` over the training images."""
        stream = self.arrange(dataset, seed)
        if self.imbalance is not None:
            stream = apply_imbalance(stream, self.imbalance, seed)
        values = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        settings = [
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in values
            if type(value) in (str, int, float) and name != "batch_size"  # which the stream shows
        ]
        return dataclasses.replace(stream, settings=", ".join([*settings, f"seed {seed}"]))

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream of `seed` without class imbalance."""
        raise NotImplementedError


def apply_imbalance(stream: Stream, imbalance: float, seed: int) -> Stream:
    """Return `stream` with only the images of the long tail, in the same order."""
    labels, rng = stream.dataset.train_labels, numpy_generator(seed, "imbalance")
    wanted = long_tail_counts(np.bincount(labels), imbalance, rng)
    return stream.filter_images(random_ranks(labels, rng) < wanted[labels])


def long_tail_counts(counts: IntArray, imbalance: float, rng: np.random.Generator) -> IntArray:
    """Return the number of images of each class to keep: all of rank 0, at least one of any rank.

    >>> long_tail_counts(np.array([100, 100, 0, 100]), 100, np.random.default_rng(0)).tolist()
    [1, 100, 0, 10]
    """
    present = np.flatnonzero(counts)
    ranks = rng.permutation(len(present))
    shares = np.float64(imbalance) ** (-ranks / max(1, len(present) - 1))
    wanted = np.zeros_like(counts)
    wanted[present] = np.maximum(1, np.rint(counts[present] * shares))
    return wanted


def random_ranks(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the rank of each image, from 0, in a random order of the images of its class.

    >>> random_ranks(np.array([7, 7, 3, 7]), np.random.default_rng(0))[2]
    np.int64(0)
    """
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sorted_labels = labels[by_class]
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[by_class] = np.arange(len(labels)) - np.searchsorted(sorted_labels, sorted_labels)
    return ranks
