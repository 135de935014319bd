"""Subset: fewer classes, fewer images, smaller images, the same way for every dataset."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from sterad.data.area import area_resize
from sterad.data.dataset import Dataset
from sterad.errors import SteradError
from sterad.validation import Count, Range, check_fields


@dataclass(frozen=True)
class Subset:
    """What of a dataset is taken; small real protocols are made with it."""

    classes: Annotated[int, Range(2, 100_000)] | None = None
    """The first so many classes, by label; all by default."""
    per_class: Count | None = None
    """The first so many training images of each class; all by default."""
    test_per_class: Count | None = None
    """The first so many test images of each class; all by default."""
    image_size: Annotated[int, Range(4, 4096)] | None = None
    """Height and width that images are brought to by averaging areas; their own by default."""

    def __post_init__(self) -> None:
        check_fields(self)

    def choose(
        self,
        labels: npt.NDArray[np.int64],
        classes: int,
        split: Literal["train", "test"],
        domains: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return the rising positions of what is taken of a split with `classes` classes.

        With domains, the images of a class are taken from all domains in equal parts.
        """
        if self.classes is not None and self.classes > classes:
            raise SteradError(
                f"classes is {self.classes} and there are {classes}: give 2 to {classes}"
            )
        kept = np.flatnonzero(labels < (classes if self.classes is None else self.classes))
        limit = self.per_class if split == "train" else self.test_per_class
        if limit is None or not len(kept):
            return kept
        largest = int(np.bincount(labels[kept]).max())
        if limit > largest:
            field = "per_class" if split == "train" else "test_per_class"
            raise SteradError(
                f"{field} is {limit} and the largest class has {largest} {split} images: "
                f"give at most {largest}, or leave {field} out"
            )
        if domains is None:
            return kept[occurrence(labels[kept]) < limit]
        _, domain = np.unique(domains[kept], return_inverse=True)
        count = int(domain.max()) + 1
        quota = limit // count + (np.arange(count) < limit % count)
        return kept[occurrence(labels[kept] * count + domain) < quota[domain]]

    def cut(self, dataset: Dataset) -> Dataset:
        """Return what is taken of a dataset in memory."""
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
        """Return the classes and training images that are taken of equally large classes."""
        kept = classes if self.classes is None else min(classes, self.classes)
        each = train / classes if self.per_class is None else min(train / classes, self.per_class)
        return kept, kept * each


def held_out(dataset: Dataset, share: float) -> Dataset:
    """Return a dataset that is tested on a share of its training images, evenly from each class.

    So that settings can be chosen without a look at the test images. A class of two images or more
    gives at least one and, as the share is at most a half, keeps at least one.
    """
    if not share:
        return dataset
    labels, before = dataset.train_labels, occurrence(dataset.train_labels)
    taken = np.ceil((before + 1) * share) > np.ceil(before * share)
    taken &= np.bincount(labels)[labels] > 1
    if not taken.any():
        raise SteradError(
            f"validation {share} of classes with one training image each leaves nothing to learn: "
            "give more images per class, or validation 0"
        )
    return dataclasses.replace(
        dataset,
        train_images=dataset.train_images[~taken],
        train_labels=labels[~taken],
        test_images=dataset.train_images[taken],
        test_labels=labels[taken],
        domains=None if dataset.domains is None else dataset.domains[~taken],
        known_digest="",
    )


def occurrence(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Count, for each value, how many equal ones stand before it.

    >>> occurrence(np.array([5, 7, 5, 5, 7]))
    array([0, 0, 1, 2, 1])
    """
    grouped = np.argsort(values, kind="stable")
    before = np.empty(len(values), dtype=np.int64)
    before[grouped] = np.arange(len(values)) - np.searchsorted(values[grouped], values[grouped])
    return before
