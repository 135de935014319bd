"""Stage 1: images at rest, from the package, from anyone's arrays, or by name."""

from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS, Defaults, Description
from sterad.data.digits import Digits
from sterad.data.synthetic import Synthetic

__all__ = ["DATASETS", "Dataset", "Defaults", "Description", "Digits", "Synthetic"]
