"""`synthetic`: random images with any number of classes, images, pixels and channels."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from sterad.data.arrays import Array, ByteArray, FloatArray, IntArray
from sterad.data.dataset import Dataset
from sterad.data.dataset_config import DATASETS, Defaults
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.validation import (
    OMIT_DEFAULT_FROM_ID,
    Count,
    NonNegative,
    Range,
    Seed,
    check_fields,
)

MAX_BYTES = 8 << 30
"""Largest total size of the images, which are generated in memory."""
GRID_SIZE = 4
"""Grid points per side of the smooth images; prototypes and smooth noise use the same grid."""
PIXELS_PER_CHUNK = 1 << 22
"""Pixels generated at once; bounds the memory of the float32 values."""


@DATASETS.register("synthetic")
@dataclass(frozen=True)
class Synthetic:
    """One smooth random image per class, plus smooth and pixel-wise noise."""

    classes: Annotated[int, Range(1, 100_000)] = 10
    """Number of classes."""
    per_class: Count = 100
    """Number of training images per class."""
    test_per_class: Count = 20
    """Number of test images per class."""
    image_size: Annotated[int, Range(1, 4096)] = 8
    """Height and width in pixels."""
    image_width: Annotated[int, Range(1, 4096)] | None = field(
        default=None, metadata=OMIT_DEFAULT_FROM_ID
    )
    """Width, if it differs from the height, which is image_size then."""
    channels: Annotated[int, Range(1, 64)] = 1
    """Number of channels: 1 for gray, 3 for color."""
    noise: NonNegative = 0.25
    """Standard deviation of the pixel-wise noise, with pixels in [0, 1]; half for smooth noise."""
    data_seed: Seed = 0
    """Seed of the images; independent of the seed of a run."""

    def __post_init__(self) -> None:
        check_fields(self)
        images = self.classes * (self.per_class + self.test_per_class)
        width = self.image_width or self.image_size
        if images * self.channels * self.image_size * width > MAX_BYTES:
            raise SteradError(
                f"{images:,} synthetic images of {width}x{self.image_size} pixels need "
                f"more than {MAX_BYTES >> 30} GiB: give fewer classes, fewer images or smaller "
                "images"
            )

    def load(self) -> Dataset:
        """Generate the images: all prototypes, then train, then test, class by class."""
        rng = numpy_generator(self.data_seed, "synthetic")
        grids = rng.standard_normal((self.classes, self.channels, GRID_SIZE, GRID_SIZE), np.float32)
        prototypes = 0.5 + 0.25 * self._interpolate(grids)
        train_labels = np.repeat(np.arange(self.classes), self.per_class)
        test_labels = np.repeat(np.arange(self.classes), self.test_per_class)
        return Dataset(
            name="synthetic",
            train_images=self._generate(prototypes, train_labels, rng),
            train_labels=train_labels,
            test_images=self._generate(prototypes, test_labels, rng),
            test_labels=test_labels,
            class_names=tuple(map(str, range(self.classes))),
            flip=False,
        )

    def defaults(self) -> Defaults:
        """Return a small encoder, and tasks and blur that depend on the counts."""
        return Defaults.for_counts(self.classes, self.classes * self.per_class, width=20)

    def _interpolate(self, grids: FloatArray) -> FloatArray:
        """Interpolate grids (n, c, g, g) linearly to images (n, c, h, w)."""
        rows = _linear_weights(self.image_size)
        columns = _linear_weights(self.image_width or self.image_size)
        images: FloatArray = rows @ grids @ columns.T
        return images

    def _generate(
        self, prototypes: FloatArray, labels: IntArray, rng: np.random.Generator
    ) -> ByteArray:
        images = np.empty((len(labels), *prototypes.shape[1:]), dtype=np.uint8)
        step = max(1, PIXELS_PER_CHUNK // prototypes[0].size)
        noise, grid = np.float32(self.noise), (self.channels, GRID_SIZE, GRID_SIZE)
        for start in range(0, len(labels), step):
            part = labels[start : start + step]
            grids = rng.standard_normal((len(part), *grid), np.float32)
            floats = rng.standard_normal((len(part), *prototypes.shape[1:]), np.float32)
            floats += self._interpolate(grids) / 2
            floats *= noise
            floats += prototypes[part]
            floats.clip(0, 1, out=floats)
            images[start : start + step] = np.rint(np.multiply(floats, 255, out=floats))
        return images


def _linear_weights(size: int) -> Array:
    """Return the weight of each grid point in each pixel along one axis: (size, GRID_SIZE)."""
    positions = np.linspace(0, GRID_SIZE - 1, size, dtype=np.float32)
    distances = np.abs(positions[:, None] - np.arange(GRID_SIZE, dtype=np.float32))
    weights: Array = np.maximum(0, 1 - distances)
    return weights
