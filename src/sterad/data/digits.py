"""`digits`: 1,797 handwritten digits of 8x8 pixels, included in the package.

The test images of "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, UCI
Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49, license CC BY 4.0
(https://creativecommons.org/licenses/by/4.0/). The original values 0..16 are scaled to
0..255 and rounded. Every fifth image of each class, in the original order, is a test image.
"""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from sterad.data.dataset import Dataset, occurrence_index
from sterad.data.dataset_config import DATASETS, Defaults, Subset, equal_tasks

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
            images, labels = stored["images"], stored["labels"]
        is_test = occurrence_index(labels) % 5 == 4
        dataset = Dataset.from_arrays(
            images[~is_test], labels[~is_test], images[is_test], labels[is_test], name="digits"
        )
        return self.apply(dataset)

    def defaults(self) -> Defaults:
        """Return a small encoder and a blur of 0.15 of the images of a task (288 in full)."""
        classes, images = self.selected_counts(10, TRAIN_IMAGES)
        return Defaults(width=20, tasks=equal_tasks(classes, 5), scale=43.0 * images / TRAIN_IMAGES)
