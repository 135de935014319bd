"""`npz`: arrays of the user in one .npz file."""

import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS
from sterad.data.stored import Contents, Split, UserFiles
from sterad.errors import SteradError

ARRAY_NAMES = {
    "train_images": "x_train",
    "train_labels": "y_train",
    "test_images": "x_test",
    "test_labels": "y_test",
}
"""Names of the arrays, each with an alternative name that is common in .npz files."""


@DATASETS.register("npz")
@dataclass(frozen=True)
class Npz(UserFiles):
    """Your own arrays: train_images, train_labels, test_images, test_labels, class_names."""

    npz_file: str = field(default="", metadata={"place": True})
    """Path of the .npz file, in the root or in the working directory."""

    name: ClassVar[str] = "npz"

    def contents(self) -> Contents:
        """Read and validate all arrays."""
        path = self.user_path()
        stored = _read_npz(path)
        found: dict[str, Any] = {
            key: stored.get(key, stored.get(other)) for key, other in ARRAY_NAMES.items()
        }
        for key, array in found.items():
            if array is None:
                raise SteradError(
                    f"{str(path)!r} has no array {key!r}, only {', '.join(sorted(stored))}: "
                    f"save the arrays with np.savez as {', '.join(ARRAY_NAMES)}"
                )
        names = stored.get("class_names")
        try:
            data = Dataset.from_arrays(
                **found, class_names=None if names is None else list(map(str, names.tolist()))
            )
        except SteradError as error:
            raise SteradError(f"{str(path)!r}: {error}") from error
        return Contents(
            train=Split.from_arrays(data.train_images, data.train_labels),
            test=Split.from_arrays(data.test_images, data.test_labels),
            class_names=data.class_names,
            sources=(path,),
        )

    def user_path(self) -> Path:
        """Return the .npz file."""
        path = self.find_path(self.npz_file, "--npz-file")
        if not path.is_file():
            raise SteradError(f"{str(path)!r} is not a file: give the path of a .npz file")
        return path


def _read_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with open(path, "rb") as file:
            is_npz = zipfile.is_zipfile(file)  # np.load treats any other file as a pickle
            file.seek(0)
            found = dict(np.load(file, allow_pickle=False)) if is_npz else None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise SteradError(
            f"{str(path)!r} cannot be read ({error}): save arrays of numbers with np.savez"
        ) from error
    if found is None:
        raise SteradError(
            f"{str(path)!r} is not a complete .npz file: save all arrays with np.savez"
        )
    return found
