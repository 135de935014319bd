"""`digits`: 1,797 handwritten digits of 8x8 pixels, included in the package.

The test images of "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, UCI
Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49, license CC BY 4.0
(https://creativecommons.org/licenses/by/4.0/). The original values 0..16 are scaled to
0..255 and rounded. Every fifth image of each class, in the original order, is a test image.
"""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS, Defaults, Subset, equal_tasks, occurrence_index

TRAIN_IMAGES = 1442
"""Number of training images."""


@DATASETS.register("digits")
@dataclass(frozen=True)
class Digits(Subset):
    """Handwritten digits: 1,442 training and 355 test images of 8x8 pixels, gray."""

    def load(self) -> Dataset:
        """Read the file in the package."""
        with files("sterad.data").joinpath("digits.npz").open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            images, labels = stored["images"][:, None], stored["labels"].astype(np.int64)
        is_test = is_every_fifth(labels)
        dataset = Dataset(
            name="digits",
            train_images=images[~is_test],
            train_labels=labels[~is_test],
            test_images=images[is_test],
            test_labels=labels[is_test],
            class_names=tuple("0123456789"),
            flip=False,
        )
        return self.apply(dataset)

    def defaults(self) -> Defaults:
        """Return a small encoder and a blur of 0.15 of the images of a task (288 in full)."""
        classes, images = self.selected_counts(10, TRAIN_IMAGES)
        return Defaults(width=20, tasks=equal_tasks(classes, 5), scale=43.0 * images / TRAIN_IMAGES)


def is_every_fifth(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mark the fifth, tenth, ... occurrence of each label.

    >>> is_every_fifth(np.array([0, 0, 1, 0, 0, 0, 0])).astype(int)
    array([0, 0, 0, 0, 0, 1, 0])
    """
    marked: npt.NDArray[np.bool_] = occurrence_index(labels) % 5 == 4
    return marked
