"""Contents: what a reader finds on disk, before a single image is decoded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sterad.data.area import area_resize
from sterad.errors import SteradError

Fetch = Callable[[npt.NDArray[np.int64], int | None], npt.NDArray[Any]]
"""(positions, image_size) -> the inputs at these positions, in the size asked for."""


@dataclass(frozen=True, eq=False)
class Split:
    """One split: its labels, and a way to its images."""

    labels: npt.NDArray[np.int64]
    fetch: Fetch
    domains: npt.NDArray[np.int64] | None = None

    @classmethod
    def of_arrays(
        cls, images: npt.NDArray[Any], labels: npt.NDArray[np.int64], what: str = "images"
    ) -> "Split":
        """Return the split of arrays that are in memory; `what` names the images in messages."""
        if len(images) != len(labels):
            raise SteradError(
                f"there are {len(labels)} labels for {len(images)} {what}: one of the two files "
                "is cut short or belongs elsewhere; fetch both again"
            )
        return cls(labels, lambda positions, size: area_resize(images[positions], size))


@dataclass(frozen=True, eq=False)
class Contents:
    """Two splits, the names of their classes, and the files that they come from."""

    train: Split
    test: Split
    class_names: tuple[str, ...]
    sources: tuple[Path, ...]
    """Files and folders: when the size or the time of one changes, all is read anew."""
    domain_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, split in (("train", self.train), ("test", self.test)):
            outside = (split.labels < 0) | (split.labels >= len(self.class_names))
            if outside.any():
                index = int(outside.argmax())
                raise SteradError(
                    f"the {what} label {split.labels[index]} at index {index} lies outside 0 to "
                    f"{len(self.class_names) - 1}: the files are damaged, or of another dataset; "
                    "fetch them again"
                )
