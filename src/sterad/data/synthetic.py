"""`synthetic`: any number of classes, images, sizes and channels, drawn from a seed."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS, Defaults
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.validation import Count, NonNegative, Range, Seed, check_fields

MOST_BYTES = 8 << 30
"""Size of all images together: they are drawn into memory."""
GRID = 4
"""Knots per side of the smooth fields: prototypes and disturbances share these frequencies."""
PIXELS_AT_ONCE = 1 << 22
"""Pixels drawn in one go: bounds the memory that the floats take, whatever the number of images."""


@DATASETS.register("synthetic")
@dataclass(frozen=True)
class Synthetic:
    """One smooth random picture per class, seen through smooth and pixel-wise noise."""

    classes: Annotated[int, Range(1, 100_000)] = 10
    """Number of classes."""
    per_class: Count = 100
    """Training images of each class."""
    test_per_class: Count = 20
    """Test images of each class."""
    image_size: Annotated[int, Range(1, 4096)] = 8
    """Height and width in pixels."""
    channels: Annotated[int, Range(1, 64)] = 1
    """Channels of an image: 1 is grey, 3 is colour."""
    noise: NonNegative = 0.25
    """Standard deviation of the pixel-wise noise, where 1 is white; the smooth noise has half."""
    data_seed: Seed = 0
    """Seed of the images; the seed of a run does not change them."""

    def __post_init__(self) -> None:
        check_fields(self)
        images = self.classes * (self.per_class + self.test_per_class)
        if images * self.channels * self.image_size**2 > MOST_BYTES:
            raise SteradError(
                f"{images:,} synthetic images of {self.image_size} pixels a side take more than "
                f"{MOST_BYTES >> 30} GiB: give fewer classes, fewer images or smaller ones"
            )

    def load(self) -> Dataset:
        """Draw the images: first all prototypes, then train, then test, class by class."""
        rng = numpy_generator(self.data_seed, "synthetic")
        knots = rng.standard_normal((self.classes, self.channels, GRID, GRID), np.float32)
        prototypes = 0.5 + 0.25 * self._smooth(knots)
        train_labels = np.repeat(np.arange(self.classes), self.per_class)
        test_labels = np.repeat(np.arange(self.classes), self.test_per_class)
        return Dataset(
            name="synthetic",
            train_images=self._draw(prototypes, train_labels, rng),
            train_labels=train_labels,
            test_images=self._draw(prototypes, test_labels, rng),
            test_labels=test_labels,
            class_names=tuple(map(str, range(self.classes))),
            flip=False,
        )

    def defaults(self) -> Defaults:
        """Return a small encoder, and tasks and blur from the counts."""
        return Defaults.for_counts(self.classes, self.classes * self.per_class, width=20)

    def _smooth(self, knots: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Interpolate knots (n, c, g, g) linearly to images (n, c, h, w)."""
        places = np.linspace(0, GRID - 1, self.image_size, dtype=np.float32)
        spread = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(GRID, dtype=np.float32)))
        images: npt.NDArray[np.float32] = spread @ knots @ spread.T
        return images

    def _draw(
        self,
        prototypes: npt.NDArray[np.float32],
        labels: npt.NDArray[np.int64],
        rng: np.random.Generator,
    ) -> npt.NDArray[np.uint8]:
        images = np.empty((len(labels), *prototypes.shape[1:]), dtype=np.uint8)
        step = max(1, PIXELS_AT_ONCE // prototypes[0].size)
        noise = np.float32(self.noise)
        for start in range(0, len(labels), step):
            part = labels[start : start + step]
            knots = rng.standard_normal((len(part), self.channels, GRID, GRID), np.float32)
            floats = rng.standard_normal((len(part), *prototypes.shape[1:]), np.float32)
            floats += self._smooth(knots) / 2
            floats *= noise
            floats += prototypes[part]
            floats.clip(0, 1, out=floats)
            images[start : start + step] = np.rint(np.multiply(floats, 255, out=floats))
        return images
