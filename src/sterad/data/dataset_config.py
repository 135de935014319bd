"""Dataset configs: frozen dataclasses, registered by name, whose fields are the options.

`Subset` is the base of most configs: it selects classes and images, and resizes images.
"""

import dataclasses
from dataclasses import Field, dataclass, field
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from sterad.data.arrays import IntArray, area_resize
from sterad.data.dataset import Dataset, occurrence_index
from sterad.errors import SteradError
from sterad.registry import Registry
from sterad.validation import OMIT_DEFAULT_FROM_ID, Count, Range, check_fields


@dataclass(frozen=True)
class Defaults:
    """Default settings of a run on a dataset, available without loading the images."""

    width: int
    """Width of the encoder."""
    tasks: int
    """Number of tasks that the classes are split into."""
    scale: float
    """Scale of the half-normal distribution that blurs the stream, in images."""

    @classmethod
    def for_counts(cls, classes: int, images: int, width: int = 64) -> "Defaults":
        """Return at most five equal tasks, with the blur of the paper's CIFAR-10.

        The paper uses a scale of 1,500 for tasks of 10,000 images: 0.15 of the images of a task.

        >>> Defaults.for_counts(classes=10, images=50_000)
        Defaults(width=64, tasks=5, scale=1500.0)
        """
        tasks = max(count for count in range(1, 6) if classes % count == 0)
        return cls(width=width, tasks=tasks, scale=3 * images / tasks / 20)


def equal_tasks(classes: int, max_tasks: int) -> int:
    """Return the largest number of equal tasks up to `max_tasks`.

    Each task has two classes or more if possible.

    >>> equal_tasks(100, 10), equal_tasks(20, 10), equal_tasks(10, 10), equal_tasks(50, 8)
    (10, 10, 5, 5)
    """
    limit = max(1, min(max_tasks, classes // 2))
    return max(count for count in range(1, limit + 1) if classes % count == 0)


class DatasetConfig(Protocol):
    """A frozen dataclass whose fields are the options of a dataset, and which loads it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def load(self) -> Dataset:
        """Return the images and labels."""
        ...

    def defaults(self) -> Defaults:
        """Return the default settings of a run on this dataset."""
        ...


DATASETS: Registry[type[DatasetConfig]] = Registry("dataset", "sterad.datasets")


@DATASETS.register("feed")
@dataclass(frozen=True)
class Feed:
    """Images from a live feed; used with the stream live, from Python only."""

    def load(self) -> Dataset:
        """Raise an error: the images of a feed are not available in advance."""
        raise SteradError(
            "the dataset feed cannot be loaded: call run(live_config(...), feed=feed) from Python"
        )

    def defaults(self) -> Defaults:
        """Return a small encoder and a single task."""
        return Defaults(width=20, tasks=1, scale=1.0)


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
    image_width: Annotated[int, Range(4, 4096)] | None = field(
        default=None, metadata=OMIT_DEFAULT_FROM_ID
    )
    """Width, if it differs from the height, which is image_size then."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.image_width is not None and self.image_size is None:
            raise SteradError(
                f"image_width {self.image_width} is set without a height: give image_size as well"
            )

    @property
    def target_size(self) -> tuple[int, int] | None:
        """Height and width to which images are resized; None for the original size."""
        if self.image_size is None:
            return None
        return self.image_size, self.image_width or self.image_size

    def choose(
        self, labels: IntArray, classes: int, split: str, domains: IntArray | None = None
    ) -> IntArray:
        """Return the sorted positions of the selected images of a split, "train" or "test".

        `classes` is the number of classes before the selection. With domains, the images of a
        class are selected from all domains in equal parts.
        """
        if self.classes is not None and self.classes > classes:
            raise SteradError(
                f"classes is {self.classes}, but the dataset has {classes}: give 2 to {classes}"
            )
        kept = np.flatnonzero(labels < (classes if self.classes is None else self.classes))
        option = "per_class" if split == "train" else "test_per_class"
        limit: int | None = getattr(self, option)
        if limit is None or not len(kept):
            return kept
        largest = int(np.bincount(labels[kept]).max())
        if limit > largest:
            raise SteradError(
                f"{option} is {limit}, but the largest class has {largest} {split} images: "
                f"give at most {largest}, or omit {option}"
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
            train_images=area_resize(dataset.train_images[train], self.target_size),
            train_labels=dataset.train_labels[train],
            test_images=area_resize(dataset.test_images[test], self.target_size),
            test_labels=dataset.test_labels[test],
            class_names=dataset.class_names[: self.classes],
            domains=None if dataset.domains is None else dataset.domains[train],
            known_digest="",
        )

    def selected_counts(self, classes: int, train: int) -> tuple[int, float]:
        """Return the number of selected classes and training images, for classes of equal size."""
        kept = classes if self.classes is None else min(classes, self.classes)
        each = train / classes if self.per_class is None else min(train / classes, self.per_class)
        return kept, kept * each
