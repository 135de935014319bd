"""`npz`: your own arrays in one file of numpy's."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sterad.data.contents import Contents, Split
from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS
from sterad.data.own import Own
from sterad.errors import SteradError

KEYS = {
    "train_images": "x_train",
    "train_labels": "y_train",
    "test_images": "x_test",
    "test_labels": "y_test",
}
"""The names of the arrays, and the other names that people give them."""


@DATASETS.register("npz")
@dataclass(frozen=True)
class Npz(Own):
    """Your own arrays: train_images, train_labels, test_images, test_labels, class_names."""

    npz_file: str = ""
    """The .npz file, under the root or in the working folder."""

    name: ClassVar[str] = "npz"

    def contents(self) -> Contents:
        """Read and check all arrays."""
        path = self._path()
        stored = _read(path)
        found: dict[str, Any] = {
            key: stored.get(key, stored.get(other)) for key, other in KEYS.items()
        }
        for key, array in found.items():
            if array is None:
                raise SteradError(
                    f"{str(path)!r} has no array {key!r}, only {', '.join(sorted(stored))}: "
                    f"save it with np.savez under {', '.join(KEYS)}"
                )
        names = stored.get("class_names")
        try:
            data = Dataset.from_arrays(
                **found, class_names=None if names is None else list(map(str, names.tolist()))
            )
        except SteradError as error:
            raise SteradError(f"{str(path)!r}: {error}") from error
        return Contents(
            train=Split.of_arrays(data.train_images, data.train_labels),
            test=Split.of_arrays(data.test_images, data.test_labels),
            class_names=data.class_names,
            sources=(path,),
        )

    def _path(self) -> Path:
        path = self.found(self.npz_file, "--npz-file")
        if not path.is_file():
            raise SteradError(f"{str(path)!r} is not a file: give the path of a .npz file")
        return path


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with open(path, "rb") as file:
            whole = zipfile.is_zipfile(file)  # numpy would take any other file for a pickle
            file.seek(0)
            found = dict(np.load(file, allow_pickle=False)) if whole else None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise SteradError(
            f"{str(path)!r} cannot be read ({error}): save plain numbers with np.savez"
        ) from error
    if found is None:
        raise SteradError(f"{str(path)!r} is no whole .npz file: save all arrays with np.savez")
    return found
