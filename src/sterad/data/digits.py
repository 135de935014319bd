"""`digits`: 1,797 real handwritten digits of 8x8 pixels, inside the package.

The test images of "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, UCI
Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49, licensed CC BY 4.0
(https://creativecommons.org/licenses/by/4.0/). Changed here: the original values 0..16 are
scaled to 0..255 and rounded. Every fifth image of each class, in the original order, is a test
image.
"""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS, Defaults, equal_tasks
from sterad.data.subset import Subset, occurrence

TRAIN = 1442
"""Images to learn from."""


@DATASETS.register("digits")
@dataclass(frozen=True)
class Digits(Subset):
    """Handwritten digits, 8x8 grey: 1,442 to learn from and 355 to test on."""

    def load(self) -> Dataset:
        """Read the embedded file."""
        with files("sterad.data").joinpath("digits.npz").open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            images, labels = stored["images"][:, None], stored["labels"].astype(np.int64)
        test = every_fifth(labels)
        whole = Dataset(
            name="digits",
            train_images=images[~test],
            train_labels=labels[~test],
            test_images=images[test],
            test_labels=labels[test],
            class_names=tuple("0123456789"),
            flip=False,
        )
        return self.cut(whole)

    def defaults(self) -> Defaults:
        """Return a small encoder and 0.15 of the 288 images of a task as the blur of all digits."""
        classes, images = self.counted(10, TRAIN)
        return Defaults(width=20, tasks=equal_tasks(classes, 5), scale=43.0 * images / TRAIN)


def every_fifth(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mark the fifth, tenth, ... occurrence of each label.

    >>> every_fifth(np.array([0, 0, 1, 0, 0, 0, 0])).astype(int)
    array([0, 0, 0, 0, 0, 1, 0])
    """
    marked: npt.NDArray[np.bool_] = occurrence(labels) % 5 == 4
    return marked
