"""`folder` and `npz`: image files of the user, one folder per class, or arrays in one .npz file."""

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sterad.data.archive import read_npz
from sterad.data.arrays import IntArray
from sterad.data.dataset import Dataset, occurrence_index
from sterad.data.dataset_config import DATASETS, Defaults
from sterad.data.file_dataset import Contents, FileDataset, Split
from sterad.data.image_files import (
    MAX_FILES_LISTED,
    Background,
    Fit,
    ImageFiles,
    decoding_error,
    find_shared_images,
    list_class_images,
    read_pixels,
)
from sterad.errors import SteradError
from sterad.files import reading
from sterad.optional_imports import require_extra
from sterad.seeds import numpy_generator
from sterad.validation import OMIT_DEFAULT_FROM_ID, Range, Seed

TEST_FOLDERS = ("test", "val", "valid", "validation")
ARRAY_NAMES = {
    "train_images": "x_train",
    "train_labels": "y_train",
    "test_images": "x_test",
    "test_labels": "y_test",
}
"""Names of the arrays, each with an alternative name that is common in .npz files."""
NPZ_REMEDY = "save arrays of numbers with np.savez"


@dataclass(frozen=True)
class UserFiles(FileDataset):
    """A dataset in files of the user, with classes and counts that are not known in advance."""

    flip: bool = field(default=False, metadata={"view": True})
    """Whether a horizontally flipped image keeps its class."""

    path_field: ClassVar[str]
    """Field with the path of the file or folder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # Equal paths are equal configs, given as text or as a Path.
        object.__setattr__(self, self.path_field, os.fspath(getattr(self, self.path_field)))

    def user_path(self) -> Path:
        """Return the user's file or folder, below the root or in the working directory."""
        name = str(getattr(self, self.path_field))
        option = f"--{self.path_field.replace('_', '-')}"
        if not name:
            raise SteradError(f"the dataset {self.name} needs {option}: give its path")
        candidates = (self.root_folder / name, Path(name))
        for path in candidates:
            if path.exists():
                return path
        missing = " or ".join(repr(str(path)) for path in dict.fromkeys(candidates))
        raise SteradError(f"there is no {missing}: correct {option} or --root")

    def location(self) -> str:
        """Return the path below the root, however it was written, or the full path elsewhere."""
        path, root = self.user_path().resolve(), self.root_folder.resolve()
        return str(path.relative_to(root) if path.is_relative_to(root) else path)

    def defaults(self) -> Defaults:
        """Return tasks and blur from the counts, which are known when the images are decoded."""
        entry = self.open_entry()
        images = len(entry.arrays["train_labels"])
        return Defaults.for_counts(len(entry.facts["class_names"]), images)


@DATASETS.register("folder", alias=("image-folder",))
@dataclass(frozen=True)
class Folder(UserFiles):
    """Your own image files: FOLDER/train/CLASS/* and FOLDER/test/CLASS/*, or FOLDER/CLASS/*."""

    folder: str | Path = field(default="", metadata={"place": True})
    """Folder with one sub-folder per class, in the root or in the working directory."""
    channels: Literal[1, 3] = 3
    """Number of channels to which images are converted: 3 for color, 1 for gray."""
    test_share: Annotated[float, Range(0, 1, True, True)] = 0.2
    """Share of each class used as test images if there is no test folder."""
    split_seed: Seed = 0
    """Seed of the split into training and test images; independent of the seed of a run."""
    fit: Fit = field(default="crop", metadata=OMIT_DEFAULT_FROM_ID)
    """How an image of another shape gets image_size: crop its center, stretch it, or pad it."""
    background: Background = field(default="white", metadata=OMIT_DEFAULT_FROM_ID)
    """Color behind transparent pixels and around padded images."""

    name: ClassVar[str] = "folder"
    path_field: ClassVar[str] = "folder"

    def contents(self) -> Contents:
        """List the image files."""
        home = self.user_path()
        if not home.is_dir():
            raise SteradError(
                f"{str(home)!r} is not a folder: give a folder with one sub-folder per class"
            )
        tests = [home / name for name in TEST_FOLDERS if (home / name).is_dir()]
        homes = [home / "train", tests[0]] if tests and (home / "train").is_dir() else [home]
        classes = _list_classes(homes[0])
        folders = [homes[0] / name for name in classes]
        paths, labels = list_class_images(folders, "add images or remove the folder")
        if len(homes) == 1:
            is_test = self._draw_test(labels, classes)
        else:
            test_paths, test_labels = _list_test_images(homes[0], homes[1], classes)
            is_test = np.arange(len(paths) + len(test_paths)) >= len(paths)
            paths, labels = paths + test_paths, np.concatenate([labels, test_labels])
        _require_separate(paths, is_test)
        files = ImageFiles(
            paths,
            self._find_size(paths),
            self.target_size,
            self.channels,
            self.fit,
            self.background,
            size_from=paths[0],
        )

        def split(positions: IntArray) -> Split:
            return Split(labels[positions], lambda at: files.fetch(positions[at]))

        return Contents(
            train=split(np.flatnonzero(~is_test)),
            test=split(np.flatnonzero(is_test)),
            class_names=tuple(classes),
            sources=_list_sources(paths, *homes),
        )

    def _draw_test(self, labels: IntArray, classes: list[str]) -> npt.NDArray[np.bool_]:
        """Return which images are test images: a share of each class, at least one, never all."""
        counts = np.bincount(labels, minlength=len(classes))
        if counts.min() < 2:
            raise SteradError(
                f"the class {classes[int(counts.argmin())]!r} has one image and needs two, one for "
                "training and one for testing: add an image, or remove the class"
            )
        order = numpy_generator(self.split_seed, "folder").permutation(len(labels))
        quota = np.rint(counts * self.test_share).clip(1, counts - 1)
        is_test = np.empty(len(labels), np.bool_)
        is_test[order] = occurrence_index(labels[order]) < quota[labels[order]]
        return is_test

    def _find_size(self, paths: list[str]) -> tuple[int, int]:
        """Return height and width of the first image, which all have if they are not resized."""
        if self.target_size is not None:
            return self.target_size
        pillow = require_extra("PIL.Image", "images")
        try:
            _, height, width = read_pixels(pillow, paths[0], self.channels).shape
        except Exception as error:  # a decoder can raise any exception on a damaged file
            raise decoding_error(pillow, paths, self.channels) from error
        return height, width


def _require_separate(paths: list[str], is_test: npt.NDArray[np.bool_]) -> None:
    """Raise an error if an image is in both splits: its test result would mean nothing."""
    splits = [[paths[i] for i in np.flatnonzero(chosen)] for chosen in (~is_test, is_test)]
    if pairs := find_shared_images(*splits):
        listed = "; ".join(f"{train!r} and {test!r}" for train, test in pairs[:MAX_FILES_LISTED])
        raise SteradError(
            f"{len(pairs)} test images are also training images: {listed}. Remove one of each pair"
        )


def _list_classes(home: Path) -> list[str]:
    with reading(home, "make the folder readable"):
        folders = [n.name for n in home.iterdir() if n.is_dir() and not n.name.startswith(".")]
    names = sorted(folders)
    if len(names) < 2:
        listed = ", ".join(map(repr, names)) or "no sub-folder"
        raise SteradError(
            f"{str(home)!r} has {len(names)} class{'es' * (len(names) != 1)} ({listed}): give two "
            "or more sub-folders, one per class"
        )
    return names


def _list_test_images(train: Path, test: Path, classes: list[str]) -> tuple[list[str], IntArray]:
    """Return the test images and their labels; a class may have none."""
    if unknown := sorted(set(_list_classes(test)) - set(classes)):
        raise SteradError(
            f"{str(test)!r} has a class {unknown[0]!r} that {str(train)!r} does not have: "
            "give both the same sub-folders"
        )
    paths, labels = list_class_images([test / name for name in classes])
    if not paths:
        raise SteradError(f"there is no image in {str(test)!r}: add images, or rename the folder")
    return paths, labels


def _list_sources(paths: list[str], *homes: Path) -> tuple[Path, ...]:
    """Return the images, which may be overwritten in place, and the folders that contain them."""
    folders = set(homes)
    for path in map(Path, paths):
        parents = (p for p in path.parents if any(map(p.is_relative_to, homes)))
        folders.update(itertools.takewhile(lambda p: p not in folders, parents))
    return (*sorted(folders), *map(Path, paths))


@DATASETS.register("npz")
@dataclass(frozen=True)
class Npz(UserFiles):
    """Your own arrays: train_images, train_labels, test_images, test_labels, class_names."""

    npz_file: str | Path = field(default="", metadata={"place": True})
    """Path of the .npz file, in the root or in the working directory."""

    name: ClassVar[str] = "npz"
    path_field: ClassVar[str] = "npz_file"

    def contents(self) -> Contents:
        """Read and validate all arrays."""
        path = self.user_path()
        if not path.is_file():
            raise SteradError(f"{str(path)!r} is not a file: give the path of a .npz file")
        stored = read_npz(path, {*ARRAY_NAMES, *ARRAY_NAMES.values(), "class_names"}, NPZ_REMEDY)
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
        if names is not None and (names.ndim != 1 or names.dtype.kind not in "USiu"):
            raise SteradError(
                f"{str(path)!r} has class_names as {names.dtype} of shape {names.shape}: save one "
                "text per class"
            )
        try:
            texts = None if names is None else names.astype(str).tolist()
            data = Dataset.from_arrays(**found, class_names=texts)
        except Exception as error:  # names may have invalid bytes, arrays may exceed the memory
            raise SteradError(f"{str(path)!r}: {str(error) or type(error).__name__}") from error
        return Contents(
            train=Split(data.train_labels, lambda at: data.train_images[at]),
            test=Split(data.test_labels, lambda at: data.test_images[at]),
            class_names=data.class_names,
            sources=(path,),
        )
