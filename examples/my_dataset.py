"""Register a dataset of your own arrays, so that runs and studies can use it by name.

sterad train agd-fd --plugin examples/my_dataset.py --dataset stripes
"""

from dataclasses import dataclass

import numpy as np

from sterad.data import DATASETS, Dataset, Defaults


@DATASETS.register("stripes")
@dataclass(frozen=True)
class Stripes:
    """Noisy stripes in four orientations."""

    per_class: int = 60
    """Number of training images per class."""

    def load(self) -> Dataset:
        """Draw random images; your own code would read files."""
        rng = np.random.default_rng(0)
        labels = np.arange(4).repeat(self.per_class + 20)
        rows, columns = np.mgrid[:16, :16]
        waves = np.stack([rows, columns, rows + columns, rows - columns])[labels] % 4 < 2
        images = np.clip(0.2 + 0.6 * waves + rng.normal(0, 0.2, waves.shape), 0, 1)
        test = np.arange(len(labels)) % (self.per_class + 20) < 20
        names = ("rows", "columns", "rising", "falling")
        return Dataset.from_arrays(
            images[~test], labels[~test], images[test], labels[test], names, name="stripes"
        )

    def defaults(self) -> Defaults:
        """Return the default settings of a run on this dataset."""
        return Defaults.for_counts(classes=4, images=4 * self.per_class, width=8)
