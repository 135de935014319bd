"""Subset: the options of every dataset that select classes and images and resize images."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from sterad.data.arrays import area_resize
from sterad.data.dataset import Dataset
from sterad.errors import SteradError
from sterad.validation import Count, Range, check_fields


@dataclass(frozen=True)
class Subset:
    """Selection of classes and images of a dataset, and their size."""

    classes: Annotated[int, Range(2, 100_000)] | None = None
    """Number of classes, lowest labels first (default: all)."""
    per_class: Count | None = None
    """Number of training images per class, first ones first (default: all)."""
    test_per_class: Count | None = None
    """Number of test images per class, first ones first (default: all)."""
    image_size: Annotated[int, Range(4, 4096)] | None = None
    """Height and width to which images are resized by averaging areas (default: original size)."""

    def __post_init__(self) -> None:
        check_fields(self)

    def choose(
        self,
        labels: npt.NDArray[np.int64],
        classes: int,
        split: Literal["train", "test"],
        domains: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return the sorted positions of the selected images of a split with `classes` classes.

        With domains, the images of a class are selected from all domains in equal parts.
        """
        if self.classes is not None and self.classes > classes:
            raise SteradError(
                f"classes is {self.classes}, but the dataset has {classes}: give 2 to {classes}"
            )
        kept = np.flatnonzero(labels < (classes if self.classes is None else self.classes))
        limit = self.per_class if split == "train" else self.test_per_class
        if limit is None or not len(kept):
            return kept
        largest = int(np.bincount(labels[kept]).max())
        if limit > largest:
            field = "per_class" if split == "train" else "test_per_class"
            raise SteradError(
                f"{field} is {limit}, but the largest class has {largest} {split} images: "
                f"give at most {largest}, or omit {field}"
            )
        if domains is None:
            return kept[occurrence_index(labels[kept]) < limit]
        _, domain = np.unique(domains[kept], return_inverse=True)
        count = int(domain.max()) + 1
        quota = limit // count + (np.arange(count) < limit % count)
        return kept[occurrence_index(labels[kept] * count + domain) < quota[domain]]

    def apply(self, dataset: Dataset) -> Dataset:
        """Return the selected part of a dataset in memory."""
        train = self.choose(dataset.train_labels, dataset.classes, "train", dataset.domains)
        test = self.choose(dataset.test_labels, dataset.classes, "test")
        return dataclasses.replace(
            dataset,
            train_images=area_resize(dataset.train_images[train], self.image_size),
            train_labels=dataset.train_labels[train],
            test_images=area_resize(dataset.test_images[test], self.image_size),
            test_labels=dataset.test_labels[test],
            class_names=dataset.class_names[: self.classes],
            domains=None if dataset.domains is None else dataset.domains[train],
            known_digest="",
        )

    def counted(self, classes: int, train: int) -> tuple[int, float]:
        """Return the number of selected classes and training images, for classes of equal size."""
        kept = classes if self.classes is None else min(classes, self.classes)
        each = train / classes if self.per_class is None else min(train / classes, self.per_class)
        return kept, kept * each


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


def occurrence_index(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each value the number of equal values before it.

    >>> occurrence_index(np.array([5, 7, 5, 5, 7]))
    array([0, 0, 1, 2, 1])
    """
    grouped = np.argsort(values, kind="stable")
    before = np.empty(len(values), dtype=np.int64)
    before[grouped] = np.arange(len(values)) - np.searchsorted(values[grouped], values[grouped])
    return before
