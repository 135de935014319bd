"""FileDataset: the base of datasets in files, which are decoded once and then memory-mapped."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sterad.data import cache
from sterad.data.arrays import Array, IntArray, area_resize, content_digest
from sterad.data.dataset import Dataset
from sterad.data.dataset_config import Defaults, Subset, equal_tasks
from sterad.data.progress import progress
from sterad.data.sources import SOURCES
from sterad.errors import SteradError

MAX_CHUNK_IMAGES = 512
MAX_CHUNK_BYTES = 1 << 27
"""Size of the images that are decoded before they are written to the cache."""
MAX_FILES_NAMED = 8
"""Files that a message about the whole dataset names."""
BLUR_SCALE = 1500.0
"""Scale of the paper's blur in images, for the complete training split of a dataset."""


def data_root(root: Path | str | None) -> Path:
    """Return the folder of the datasets: `root`, else STERAD_DATA, else `data`."""
    return Path((os.environ.get("STERAD_DATA") or "data") if root is None else root)


@dataclass(frozen=True)
class Layout:
    """A folder and the files that it must contain, each with one or more accepted names."""

    folder: str
    files: tuple[tuple[str, ...], ...]

    def missing(self, home: Path) -> list[str]:
        """Return the names of the files that are not in `home`."""
        return [names[0] for names in self.files if not any(_exists(home / n) for n in names)]

    def paths(self, home: Path) -> list[Path]:
        """Return the paths of the files in `home`, which must contain all of them."""
        return [next(home / n for n in names if _exists(home / n)) for names in self.files]


def _exists(path: Path) -> bool:
    """Return whether a path is a file or folder; reading a FIFO or device could never end."""
    return path.is_file() or path.is_dir()


@dataclass(frozen=True, eq=False)
class Split:
    """The labels of one split, and a function that returns the images at given positions."""

    labels: IntArray
    fetch: Callable[[IntArray], Array]
    domains: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Contents:
    """The files of a dataset before decoding: two splits, class names and source files."""

    train: Split
    test: Split
    class_names: tuple[str, ...]
    sources: tuple[Path, ...]
    """Files and folders; a change of one of them invalidates the cache."""
    domain_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        are_few = len(self.sources) <= MAX_FILES_NAMED  # else they are images in folders
        files = "".join(f" {source.name!r}" for source in self.sources) if are_few else ""
        for name in self.class_names:
            if any("\ud800" <= character <= "\udfff" for character in name):
                raise SteradError(
                    f"the class name {name!r} is not valid Unicode: rename it"
                    + (f" in{files}" if files else "")
                )
        for what, split in (("train", self.train), ("test", self.test)):
            outside = (split.labels < 0) | (split.labels >= len(self.class_names))
            if outside.any():
                index = int(outside.argmax())
                raise SteradError(
                    f"the {what} label {split.labels[index]} at index {index} is outside 0 to "
                    f"{len(self.class_names) - 1}: the files{files} are damaged or from another "
                    "dataset; download them again"
                )


@dataclass(frozen=True)
class FileDataset(Subset):
    """A dataset in files; a subclass implements `contents`."""

    root: Path | str | None = field(default=None, metadata={"place": True})
    """Folder of the datasets (default: the environment variable STERAD_DATA, else `data`)."""

    name: ClassVar[str]
    system_folders: ClassVar[tuple[Path, ...]] = ()
    """Folders outside the root that are searched."""

    @property
    def root_folder(self) -> Path:
        """Folder of the datasets, with the default applied."""
        return data_root(self.root)

    @property
    def flip(self) -> bool:
        """Whether a horizontally flipped image keeps its class."""
        return SOURCES[self.name].flip

    def find_layout(self, *layouts: Layout) -> tuple[Path, Layout]:
        """Return the folder that contains the complete dataset, and its layout.

        Searched are the folder of each layout in the root, the root itself, and `system_folders`.
        """
        root, incomplete = self.root_folder, []
        for layout in layouts:
            for home in (root / layout.folder, root, *self.system_folders):
                missing = layout.missing(home)
                if not missing:
                    return home, layout
                # A root may contain an unrelated `train` or `s1`: the folder name must match too.
                if len(missing) < len(layout.files) and home.match(layout.folder):
                    incomplete.append((home, missing))
        remedy = f"run `sterad data get {self.name} --root {root}`"
        if incomplete:
            home, missing = incomplete[0]
            raise SteradError(
                f"{self.name} in {str(home)!r} lacks {', '.join(missing)}: move that folder "
                f"elsewhere and {remedy}, or unpack the official archive again"
            )
        found = f"no {self.name} in {str(root)!r}" if root.exists() else f"no folder {str(root)!r}"
        for remote in (remote for choice in SOURCES[self.name].choices for remote in choice):
            if remote.unpacks and (root / remote.path).exists():
                found += f", only the archive {remote.path}"
        raise SteradError(
            f"there is {found}: set --root or STERAD_DATA to the folder that contains "
            f"{layouts[0].folder!r}, or {remedy}"
        )

    def contents(self) -> Contents:
        """Return the contents of the files; raise an error with the remedy if files are missing."""
        raise NotImplementedError

    def load(self) -> Dataset:
        """Memory-map the decoded images; decode them if they are not in the cache."""
        entry = self.open_entry()
        # Labels are small and read often, so they are copied to memory.
        arrays = {name: a if "images" in name else np.array(a) for name, a in entry.arrays.items()}
        return Dataset(
            name=self.name,
            class_names=tuple(entry.facts["class_names"]),
            flip=self.flip,
            domain_names=tuple(entry.facts["domain_names"]),
            known_digest=content_digest(entry.digests, entry.facts["class_names"]),
            **arrays,
        )

    def open_entry(self) -> cache.Entry:
        """Return the cache entry of this dataset; decode the selected images if there is none."""
        return cache.find_entry(self.root_folder, self.key) or self._decode()

    def require_files(self) -> None:
        """Raise the error of `load` if the files are missing, without decoding images."""
        if cache.find_entry(self.root_folder, self.key) is None:
            self.contents()

    def defaults(self) -> Defaults:
        """Return the paper's tasks and blur, scaled to the selected images; nothing is loaded."""
        official = SOURCES[self.name]
        classes, images = self.selected_counts(*self.full_counts())
        scale = BLUR_SCALE * images / official.train
        return Defaults(width=64, tasks=equal_tasks(classes, official.tasks), scale=scale)

    def full_counts(self) -> tuple[int, int]:
        """Return the number of classes and training images before any selection."""
        return SOURCES[self.name].classes, SOURCES[self.name].train

    def location(self) -> str:
        """Return the path of the user's own files; empty for datasets found by the root alone."""
        return ""

    @property
    def key(self) -> str:
        """Name of the cache entry, from all options that change the images."""
        options = {
            one.name: value
            for one in dataclasses.fields(self)
            if not {"place", "view"} & set(one.metadata)
            and ((value := getattr(self, one.name)) != one.default or not _is_omitted(one))
        }
        options |= {"location": where} if (where := self.location()) else {}
        text = json.dumps(options, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def _decode(self) -> cache.Entry:
        """Decode the selected images into a new cache entry."""
        contents, arrays = self.contents(), {}
        for what, split in (("train", contents.train), ("test", contents.test)):
            chosen = self.choose(split.labels, len(contents.class_names), what, split.domains)
            arrays[f"{what}_images"] = self._image_chunks(split, chosen, what)
            arrays[f"{what}_labels"] = _single_chunk(split.labels[chosen])
            if what == "train" and split.domains is not None:
                arrays["domains"] = _single_chunk(split.domains[chosen])
        facts = {
            "class_names": contents.class_names[: self.classes],
            "domain_names": contents.domain_names,
        }
        return cache.make_entry(self.root_folder, self.key, arrays, facts, contents.sources)

    def _image_chunks(self, split: Split, positions: IntArray, what: str) -> cache.Chunks:
        title = f"{self.name}: decoding {what} images"

        def chunks() -> Iterator[Array]:
            with progress(title, len(positions), "images") as advance:
                size = split.fetch(positions[:1]).nbytes if len(positions) else 1
                count = min(MAX_CHUNK_IMAGES, max(1, MAX_CHUNK_BYTES // size))
                for start in range(0, len(positions), count):
                    part = positions[start : start + count]
                    yield area_resize(split.fetch(part), self.target_size)
                    advance(len(part))

        return cache.Chunks(len(positions), chunks)


def _is_omitted(one: dataclasses.Field[Any]) -> bool:
    """Return whether a field is not part of keys and ids while it has its default."""
    return "omit_default_from_id" in one.metadata


def _single_chunk(array: IntArray) -> cache.Chunks:
    return cache.Chunks(len(array), lambda: [array])
