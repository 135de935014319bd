"""A dataset of one's own arrays, by name, for runs and studies.

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
    """Images of each class to learn from."""

    def load(self) -> Dataset:
        """Draw the images; yours would be read from files."""
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
        """Return what a run takes where the user says nothing."""
        return Defaults.for_counts(classes=4, images=4 * self.per_class, width=8)
