"""`folder`: image files of the user, one folder per class, with or without a test folder."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sterad.data.description import DATASETS, occurrence_index
from sterad.data.image_files import ImageFiles, decoding_error, import_pillow, list_images
from sterad.data.stored import Contents, Split, UserFiles
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.validation import Range, Seed

TEST_FOLDERS = ("test", "val", "valid", "validation")


@DATASETS.register("folder", alias=("image-folder",))
@dataclass(frozen=True)
class Folder(UserFiles):
    """Your own image files: FOLDER/train/CLASS/* and FOLDER/test/CLASS/*, or FOLDER/CLASS/*."""

    folder: str = field(default="", metadata={"place": True})
    """Folder with one sub-folder per class, in the root or in the working directory."""
    channels: Literal[1, 3] = 3
    """Number of channels to which images are converted: 3 for color, 1 for gray."""
    test_share: Annotated[float, Range(0, 1, True, True)] = 0.2
    """Share of each class used as test images if there is no test folder."""
    split_seed: Seed = 0
    """Seed of the split into training and test images; independent of the seed of a run."""

    name: ClassVar[str] = "folder"

    def contents(self) -> Contents:
        """List the image files."""
        home = self.user_path()
        test = next((home / n for n in TEST_FOLDERS if (home / n).is_dir()), None)
        if (home / "train").is_dir() and test is not None:
            return self._from_two_folders(home / "train", test)
        return self._from_one_folder(home)

    def user_path(self) -> Path:
        """Return the folder with the classes."""
        home = self.find_path(self.folder, "--folder")
        if not home.is_dir():
            raise SteradError(
                f"{str(home)!r} is not a folder: give a folder with one sub-folder per class"
            )
        return home

    def _from_two_folders(self, train: Path, test: Path) -> Contents:
        classes = _list_classes(train)
        unknown = sorted(set(_list_classes(test)) - set(classes))
        if unknown:
            raise SteradError(
                f"{str(test)!r} has a class {unknown[0]!r} that {str(train)!r} does not have: "
                "give both the same sub-folders"
            )
        paths, labels = _list_files(train, classes, allow_empty=False)
        test_paths, test_labels = _list_files(test, classes, allow_empty=True)
        side, all_paths = self._find_side(paths + test_paths), (*paths, *test_paths)
        train_files = ImageFiles("train", paths, side, self.channels, all_paths)
        test_files = ImageFiles("test", test_paths, side, self.channels, all_paths)
        return Contents(
            train=Split(labels, train_files.fetch),
            test=Split(test_labels, test_files.fetch),
            class_names=tuple(classes),
            sources=_list_sources(paths + test_paths, train, test),
        )

    def _from_one_folder(self, home: Path) -> Contents:
        classes = _list_classes(home)
        paths, labels = _list_files(home, classes, allow_empty=False)
        files = ImageFiles("folder", paths, self._find_side(paths), self.channels)
        is_test = self._draw_test(labels, classes)

        def split(positions: npt.NDArray[np.int64]) -> Split:
            return Split(labels[positions], lambda at, size: files.fetch(positions[at], size))

        return Contents(
            train=split(np.flatnonzero(~is_test)),
            test=split(np.flatnonzero(is_test)),
            class_names=tuple(classes),
            sources=_list_sources(paths, home),
        )

    def _draw_test(
        self, labels: npt.NDArray[np.int64], classes: list[str]
    ) -> npt.NDArray[np.bool_]:
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

    def _find_side(self, paths: list[str]) -> int:
        """Return image_size, or the side of the first image, which all images must have."""
        if self.image_size is not None:
            return self.image_size
        path, pillow = paths[0], import_pillow()
        try:
            with pillow.open(path) as image:
                width, height = image.size
        except Exception as error:  # a decoder can raise any exception on a damaged file
            raise decoding_error(pillow, paths, self.channels) from error
        if width != height:
            raise SteradError(
                f"image 0, {path!r}, has {width}x{height} pixels and is not square: give "
                "image_size to crop each image to its center square and resize it"
            )
        return int(width)


def _list_classes(home: Path) -> list[str]:
    names = sorted(n.name for n in home.iterdir() if n.is_dir() and not n.name.startswith("."))
    if len(names) < 2:
        raise SteradError(
            f"{str(home)!r} has {len(names)} class{'es' * (len(names) != 1)} "
            f"({', '.join(names) or 'no sub-folder'}): give two or more sub-folders, one per class"
        )
    return names


def _list_files(
    home: Path, classes: list[str], allow_empty: bool
) -> tuple[list[str], npt.NDArray[np.int64]]:
    folders = [list_images(home / name) for name in classes]
    for name, files in zip(classes, folders, strict=True):
        if not allow_empty and not files:
            raise SteradError(
                f"there is no image in {str(home / name)!r}: add images or remove the folder"
            )
    labels = np.repeat(np.arange(len(classes)), [len(files) for files in folders])
    paths = [path for files in folders for path in files]
    if not paths:
        raise SteradError(f"there is no image in {str(home)!r}: add images, or rename the folder")
    return paths, labels


def _list_sources(paths: list[str], *homes: Path) -> tuple[Path, ...]:
    """Return the images, which may be overwritten in place, and the folders that contain them."""
    folders = set(homes)
    for path in map(Path, paths):
        parents = (p for p in path.parents if any(map(p.is_relative_to, homes)))
        folders.update(itertools.takewhile(lambda p: p not in folders, parents))
    return (*sorted(folders), *map(Path, paths))
