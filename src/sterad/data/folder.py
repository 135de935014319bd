"""`folder`: your own images, one folder a class, under train and test or split by a seed."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sterad.data.contents import Contents, Split
from sterad.data.description import DATASETS
from sterad.data.image_files import ImageFiles, import_pillow, listed, undecodable
from sterad.data.own import Own
from sterad.data.subset import occurrence
from sterad.errors import SteradError
from sterad.seeds import numpy_generator
from sterad.validation import Range, Seed

TEST_NAMES = ("test", "val", "valid", "validation")


@DATASETS.register("folder", alias=("image-folder",))
@dataclass(frozen=True)
class Folder(Own):
    """Your own images: FOLDER/train/CLASS/* and FOLDER/test/CLASS/*, or FOLDER/CLASS/*."""

    folder: str = ""
    """The folder with the classes, under the root or in the working folder."""
    channels: Literal[1, 3] = 3
    """3 makes grey images colour, 1 makes colour images grey."""
    test_share: Annotated[float, Range(0, 1, True, True)] = 0.2
    """Share of each class that is for testing, where there is no folder for it."""
    split_seed: Seed = 0
    """Seed of that choice; the seed of a run does not change it."""

    name: ClassVar[str] = "folder"

    def contents(self) -> Contents:
        """List the folders."""
        home = self._home()
        test = next((home / n for n in TEST_NAMES if (home / n).is_dir()), None)
        if (home / "train").is_dir() and test is not None:
            return self._two_splits(home / "train", test)
        return self._one_split(home)

    def _home(self) -> Path:
        home = self.found(self.folder, "--folder")
        if not home.is_dir():
            raise SteradError(
                f"{str(home)!r} is not a folder: give one with a sub-folder for each class"
            )
        return home

    def _two_splits(self, train: Path, test: Path) -> Contents:
        classes = _classes(train)
        unknown = sorted(set(_classes(test)) - set(classes))
        if unknown:
            raise SteradError(
                f"{str(test)!r} has a class {unknown[0]!r} that {str(train)!r} has not: "
                "give both the same folders"
            )
        paths, labels = _files(train, classes, needed=True)
        test_paths, test_labels = _files(test, classes, needed=False)
        side, every = self._side(paths + test_paths), (*paths, *test_paths)
        train_files = ImageFiles("train", paths, side, self.channels, every)
        test_files = ImageFiles("test", test_paths, side, self.channels, every)
        return Contents(
            train=Split(labels, train_files.fetch),
            test=Split(test_labels, test_files.fetch),
            class_names=tuple(classes),
            sources=_sources(paths + test_paths, train, test),
        )

    def _one_split(self, home: Path) -> Contents:
        classes = _classes(home)
        paths, labels = _files(home, classes, needed=True)
        files = ImageFiles("folder", paths, self._side(paths), self.channels)
        test = self._is_test(labels, classes)

        def split(places: npt.NDArray[np.int64]) -> Split:
            return Split(labels[places], lambda at, size: files.fetch(places[at], size))

        return Contents(
            train=split(np.flatnonzero(~test)),
            test=split(np.flatnonzero(test)),
            class_names=tuple(classes),
            sources=_sources(paths, home),
        )

    def _is_test(self, labels: npt.NDArray[np.int64], classes: list[str]) -> npt.NDArray[np.bool_]:
        """Mark the rounded share of each class, at least one image and never all of them."""
        counts = np.bincount(labels, minlength=len(classes))
        if counts.min() < 2:
            raise SteradError(
                f"the class {classes[int(counts.argmin())]!r} has one image, which cannot be both "
                "for training and for testing: add another, or remove the class"
            )
        order = numpy_generator(self.split_seed, "folder").permutation(len(labels))
        wanted = np.rint(counts * self.test_share).clip(1, counts - 1)
        test = np.empty(len(labels), np.bool_)
        test[order] = occurrence(labels[order]) < wanted[labels[order]]
        return test

    def _side(self, paths: list[str]) -> int:
        """Return the side of the first image, which all others must share."""
        if self.image_size is not None:
            return self.image_size
        path, pillow = paths[0], import_pillow()
        try:
            with pillow.open(path) as image:
                width, height = image.size
        except Exception as error:  # a damaged file can raise anything in a decoder
            raise undecodable(pillow, paths, self.channels) from error
        if width != height:
            raise SteradError(
                f"image 0, {path!r}, is {width}x{height} pixels: give image_size, to which the "
                "largest centred square of each image is brought"
            )
        return int(width)


def _classes(home: Path) -> list[str]:
    names = sorted(n.name for n in home.iterdir() if n.is_dir() and not n.name.startswith("."))
    if len(names) < 2:
        raise SteradError(
            f"{str(home)!r} has {len(names)} class{'es' * (len(names) != 1)} "
            f"({', '.join(names) or 'no folder'}): give two or more folders, one for each class"
        )
    return names


def _files(home: Path, classes: list[str], needed: bool) -> tuple[list[str], npt.NDArray[np.int64]]:
    folders = [listed(home / name) for name in classes]
    for name, files in zip(classes, folders, strict=True):
        if needed and not files:
            raise SteradError(f"there is no image in {str(home / name)!r}: add some or remove it")
    labels = np.repeat(np.arange(len(classes)), [len(files) for files in folders])
    paths = [path for files in folders for path in files]
    if not paths:
        raise SteradError(f"there is no image in {str(home)!r}: add some, or rename the folder")
    return paths, labels


def _sources(paths: list[str], *homes: Path) -> tuple[Path, ...]:
    """Return the images, which may be overwritten in place, and the folders that list them."""
    folders = set(homes)
    for path in map(Path, paths):
        between = (one for one in path.parents if any(map(one.is_relative_to, homes)))
        folders.update(itertools.takewhile(lambda one: one not in folders, between))
    return (*sorted(folders), *map(Path, paths))
