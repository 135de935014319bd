"""`folder`: your own images, one folder a class, under train and test or split by a seed."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sterad.data.contents import Contents, Split
from sterad.data.description import DATASETS
from sterad.data.image_files import ImageFiles, import_pillow, listed
from sterad.data.own import Own
from sterad.data.subset import occurrence
from sterad.errors import SteradError
from sterad.seeds import numpy_generator

TEST_NAMES = ("test", "val", "valid", "validation")


@DATASETS.register("folder", alias=("image-folder",))
@dataclass(frozen=True)
class Folder(Own):
    """Your own images: FOLDER/train/CLASS/* and FOLDER/test/CLASS/*, or FOLDER/CLASS/*."""

    folder: str = ""
    """The folder with the classes, under the root or by its full path."""
    channels: Literal[1, 3] = 3
    """3 makes grey images colour, 1 makes colour images grey."""
    test_share: float = 0.2
    """Share of each class that is for testing, where there is no folder for it."""
    split_seed: int = 0
    """Seed of that choice; the seed of a run does not change it."""

    name: ClassVar[str] = "folder"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.test_share < 1:
            raise SteradError(f"test_share is {self.test_share}: give more than 0 and less than 1")

    def contents(self) -> Contents:
        """List the folders."""
        home = self._home()
        test = next((home / n for n in TEST_NAMES if (home / n).is_dir()), None)
        if (home / "train").is_dir() and test is not None:
            return self._two_splits(home / "train", test)
        return self._one_split(home)

    def _home(self) -> Path:
        if not self.folder:
            raise SteradError(
                "the dataset folder needs a folder: give --folder, one with a "
                "sub-folder for each class"
            )
        home = self.place / self.folder
        if not home.is_dir():
            raise SteradError(
                f"there is no folder {str(home)!r}: give --folder, and --root where it lies"
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
        side = self._side(paths[0])
        return Contents(
            train=Split(labels, ImageFiles("train", paths, side, self.channels).fetch),
            test=Split(test_labels, ImageFiles("test", test_paths, side, self.channels).fetch),
            class_names=tuple(classes),
            sources=_sources(train, test),
        )

    def _one_split(self, home: Path) -> Contents:
        classes = _classes(home)
        paths, labels = _files(home, classes, needed=True)
        files = ImageFiles("folder", paths, self._side(paths[0]), self.channels)
        test = self._is_test(labels, classes)

        def split(places: npt.NDArray[np.int64]) -> Split:
            return Split(labels[places], lambda at, size: files.fetch(places[at], size))

        return Contents(
            train=split(np.flatnonzero(~test)),
            test=split(np.flatnonzero(test)),
            class_names=tuple(classes),
            sources=_sources(home),
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

    def _side(self, path: str) -> int:
        """Return the side of the first image, which all others must share."""
        if self.image_size is not None:
            return self.image_size
        try:
            with import_pillow().open(path) as image:
                width, height = image.size
        except SteradError:
            raise
        except Exception as error:  # a damaged file can raise anything in a decoder
            raise SteradError(f"image 0, {path!r}, does not decode ({error}): remove it") from error
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


def _sources(*homes: Path) -> tuple[Path, ...]:
    folders = (one for home in homes for one in (home, *home.rglob("*")))
    return tuple(one for one in folders if one.is_dir())
