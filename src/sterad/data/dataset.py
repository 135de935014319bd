"""Dataset: the train and test split of images or feature vectors, with labels from 0."""

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sterad.data.arrays import Array, IntArray, array_digest, as_inputs, as_labels, content_digest
from sterad.errors import SteradError

ARRAY_FIELDS = ("train_images", "train_labels", "test_images", "test_labels", "domains")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test data, validated on construction.

    Inputs are images, uint8 (N, c, h, w), or feature vectors, float32 (N, d).
    The arrays may be memory-mapped: validation reads labels and vectors but never images.
    """

    name: str
    train_images: Array
    train_labels: IntArray
    test_images: Array
    test_labels: IntArray
    class_names: tuple[str, ...]
    """Name of each class; the number of names is the number of classes."""
    flip: bool
    """Whether a horizontally flipped image keeps its class."""
    domains: IntArray | None = None
    """Domain of each training image, such as the session that it was recorded in."""
    domain_names: tuple[str, ...] = ()
    """Name of each domain, in natural order."""
    known_digest: str = ""
    """Value of `digest` if it is already known."""

    def __post_init__(self) -> None:
        if not self.class_names:
            raise SteradError(f"the dataset {self.name!r} has no classes: give class_names")
        for name in ARRAY_FIELDS:
            array: object = getattr(self, name)
            if not isinstance(array, np.ndarray) and (name != "domains" or array is not None):
                raise SteradError(
                    f"{name} is of type {type(array).__name__}: give a numpy array, or use "
                    "Dataset.from_arrays"
                )
        for split in ("train", "test"):
            images, labels = getattr(self, f"{split}_images"), getattr(self, f"{split}_labels")
            _check_inputs(images, f"{split} images")
            _check_labels(labels, len(images), len(self.class_names), f"{split} labels", "classes")
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise SteradError(
                f"train images have shape {self.train_images.shape[1:]} and test images "
                f"{self.test_images.shape[1:]}: give both splits the same shape"
            )
        if self.domains is not None:
            count = len(self.domain_names)
            _check_labels(self.domains, len(self.train_images), count, "domains", "domains")

    @property
    def classes(self) -> int:
        """Number of classes, including those without images."""
        return len(self.class_names)

    @cached_property
    def digest(self) -> str:
        """Hash of images, labels, domains and class names: 16 hex digits."""
        if self.known_digest:
            return self.known_digest
        arrays = {name: getattr(self, name) for name in ARRAY_FIELDS}
        digests = {name: array_digest(a) for name, a in arrays.items() if a is not None}
        return content_digest(digests, self.class_names)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input: (c, h, w) or (d,)."""
        return tuple(self.train_images.shape[1:])

    @classmethod
    def from_arrays(
        cls,
        train_images: object,
        train_labels: object,
        test_images: object,
        test_labels: object,
        class_names: Sequence[str] | None = None,
        flip: bool = False,
        name: str = "arrays",
    ) -> "Dataset":
        """Construct a dataset from numpy or torch arrays.

        Images are uint8, or floats in [0, 1] that are rounded to 8 bits. Their shape is (N, h, w),
        (N, c, h, w) or (N, h, w, c) with 1 or 3 channels. An array (N, d) holds feature vectors.
        Without `class_names`, the classes are 0 to the largest label.

        >>> rng = np.random.default_rng(0)
        >>> images, labels = rng.random((6, 8, 8)), [0, 1, 2, 0, 1, 2]
        >>> data = Dataset.from_arrays(images, labels, images, labels)
        >>> data.classes, data.input_shape, data.train_images.dtype
        (3, (1, 8, 8), dtype('uint8'))
        """
        train, test = as_labels(train_labels, "train labels"), as_labels(test_labels, "test labels")
        if class_names is None:
            class_names = _names_from_labels(train, test)
        return cls(
            name=name,
            train_images=as_inputs(train_images, "train images"),
            train_labels=train,
            test_images=as_inputs(test_images, "test images"),
            test_labels=test,
            class_names=_as_names(class_names),
            flip=flip,
        )


def _as_names(names: Any) -> tuple[str, ...]:
    with suppress(TypeError, ValueError):  # not iterable, or an integer of thousands of digits
        found = [] if isinstance(names, str) else list(names)
        if found and all(isinstance(name, str | int | np.integer) for name in found):
            return tuple(map(str, found))
    raise SteradError("class_names must be a list of texts or integers, one name per class")


def _names_from_labels(train: IntArray, test: IntArray) -> tuple[str, ...]:
    both = np.concatenate([train, test])
    if not both.size:
        raise SteradError("the labels are empty: give at least one train and one test image")
    if both.max() >= both.size:
        raise SteradError(
            f"label {both.max()} implies more classes than there are images, {both.size}: "
            "number the classes from 0, or give class_names"
        )
    return tuple(map(str, range(int(both.max()) + 1)))


def _check_inputs(inputs: Array, what: str) -> None:
    image = inputs.ndim == 4 and inputs.dtype == np.uint8
    vector = inputs.ndim == 2 and inputs.dtype == np.float32
    if not (image or vector):
        raise SteradError(
            f"{what} are {inputs.dtype} of shape {inputs.shape}: give images as uint8 "
            "(N, c, h, w) or feature vectors as float32 (N, d)"
        )
    if inputs.size == 0:
        raise SteradError(f"{what} of shape {inputs.shape} are empty: give at least one image")
    if vector and not (finite := np.isfinite(inputs).all(axis=1)).all():
        raise SteradError(
            f"{what} contain a NaN or infinite value in vector {finite.argmin()}: "
            "correct or remove that vector"
        )


def _check_labels(labels: Array, images: int, limit: int, what: str, kind: str) -> None:
    if labels.ndim != 1 or labels.dtype != np.int64:
        raise SteradError(
            f"{what} are {labels.dtype} of shape {labels.shape}: give int64 of shape (N,), one per "
            "image"
        )
    if len(labels) != images:
        raise SteradError(f"there are {len(labels)} {what} for {images} images: give one per image")
    outside = (labels < 0) | (labels >= limit)
    if outside.any():
        index = int(outside.argmax())
        raise SteradError(
            f"{what} contain {labels[index]} at index {index}, outside the declared {kind} 0 to "
            f"{limit - 1}: renumber the labels, or declare the names of more {kind}"
        )


def held_out(dataset: Dataset, share: float) -> Dataset:
    """Replace the test split by a share of the training images, taken evenly from each class.

    Settings are tuned on this split, so that the test images stay unseen. A class of two images or
    more gives at least one image and keeps at least one, as the share is at most 0.5.
    """
    if not share:
        return dataset
    labels, before = dataset.train_labels, occurrence_index(dataset.train_labels)
    is_held = np.ceil((before + 1) * share) > np.ceil(before * share)
    is_held &= np.bincount(labels)[labels] > 1
    if not is_held.any():
        raise SteradError(
            f"validation is {share}, but each class has only one training image, which cannot be "
            "held out: give more images per class, or validation 0"
        )
    return dataclasses.replace(
        dataset,
        train_images=dataset.train_images[~is_held],
        train_labels=labels[~is_held],
        test_images=dataset.train_images[is_held],
        test_labels=labels[is_held],
        domains=None if dataset.domains is None else dataset.domains[~is_held],
        known_digest="",
    )


def occurrence_index(values: IntArray) -> IntArray:
    """Return for each value the number of equal values before it.

    >>> occurrence_index(np.array([5, 7, 5, 5, 7]))
    array([0, 0, 1, 2, 1])
    """
    grouped = np.argsort(values, kind="stable")
    before = np.empty(len(values), dtype=np.int64)
    before[grouped] = np.arange(len(values)) - np.searchsorted(values[grouped], values[grouped])
    return before
