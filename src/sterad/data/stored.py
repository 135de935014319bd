"""Base classes of datasets in files, which are decoded once and then memory-mapped."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sterad.data import cache
from sterad.data.arrays import area_resize, content_digest
from sterad.data.dataset import Dataset
from sterad.data.description import Defaults, Subset, equal_tasks
from sterad.data.progress import progress
from sterad.data.sources import SOURCES, data_root
from sterad.errors import SteradError

IMAGES_PER_CHUNK = 512
"""Images decoded before they are written to the cache; bounds the memory use."""
BLUR_SCALE = 1500.0
"""Scale of the paper's blur in images, for the complete training split of a dataset."""

Fetch = Callable[[npt.NDArray[np.int64], int | None], npt.NDArray[Any]]
"""(positions, image_size) -> the inputs at these positions, resized to image_size."""


@dataclass(frozen=True, eq=False)
class Split:
    """The labels of one split, and a function that returns its images."""

    labels: npt.NDArray[np.int64]
    fetch: Fetch
    domains: npt.NDArray[np.int64] | None = None

    @classmethod
    def from_arrays(
        cls, images: npt.NDArray[Any], labels: npt.NDArray[np.int64], what: str = "images"
    ) -> "Split":
        """Return a split of arrays in memory; `what` names the images in messages."""
        if len(images) != len(labels):
            raise SteradError(
                f"there are {len(labels)} labels for {len(images)} {what}: one of the two files "
                "is truncated or from another dataset; download both again"
            )
        return cls(labels, lambda positions, size: area_resize(images[positions], size))


@dataclass(frozen=True, eq=False)
class Contents:
    """The files of a dataset before decoding: two splits, class names and source files."""

    train: Split
    test: Split
    class_names: tuple[str, ...]
    sources: tuple[Path, ...]
    """Files and folders; a change of size or modification time invalidates the cache."""
    domain_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, split in (("train", self.train), ("test", self.test)):
            outside = (split.labels < 0) | (split.labels >= len(self.class_names))
            if outside.any():
                index = int(outside.argmax())
                raise SteradError(
                    f"the {what} label {split.labels[index]} at index {index} is outside 0 to "
                    f"{len(self.class_names) - 1}: the files are damaged or from another dataset; "
                    "download them again"
                )


@dataclass(frozen=True)
class StoredDataset(Subset):
    """A dataset in files; a subclass implements `contents`."""

    root: Path | None = field(default=None, metadata={"place": True})
    """Folder of the datasets (default: the environment variable STERAD_DATA, else `data`)."""

    name: ClassVar[str]
    flips: ClassVar[bool] = True
    """Whether a horizontally flipped image keeps its class."""

    @property
    def root_folder(self) -> Path:
        """Folder of the datasets, with the default applied."""
        return data_root(self.root)

    def allows_flip(self) -> bool:
        """Return whether a horizontally flipped image keeps its class."""
        return self.flips

    def contents(self) -> Contents:
        """Return the contents of the files; raise an error with the remedy if files are missing."""
        raise NotImplementedError

    def load(self) -> Dataset:
        """Memory-map the decoded images; decode them if they are not in the cache."""
        entry = cache.find_entry(self.root_folder, self.key) or self._decode()
        arrays, facts = entry.arrays, entry.facts
        # Labels are small and read often, so they are copied to memory.
        labels = {name: np.array(a) for name, a in arrays.items() if "images" not in name}
        return Dataset(
            name=self.name,
            train_images=arrays["train_images"],
            train_labels=labels["train_labels"],
            test_images=arrays["test_images"],
            test_labels=labels["test_labels"],
            class_names=tuple(facts["class_names"]),
            flip=self.allows_flip(),
            domains=labels.get("domains"),
            domain_names=tuple(facts["domain_names"]),
            known_digest=content_digest(entry.digests, facts["class_names"]),
        )

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
        skipped = {f.name for f in dataclasses.fields(self) if {"place", "view"} & set(f.metadata)}
        options = {k: v for k, v in dataclasses.asdict(self).items() if k not in skipped}
        options |= {"location": where} if (where := self.location()) else {}
        text = json.dumps(options, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def _decode(self) -> cache.Entry:
        """Decode the selected images into a new cache entry."""
        contents = self.contents()
        train = self._selected(contents, "train")
        test = self._selected(contents, "test")
        arrays = {
            "train_images": self._image_chunks(contents.train, train, "training"),
            "test_images": self._image_chunks(contents.test, test, "test"),
            "train_labels": _single_chunk(contents.train.labels[train]),
            "test_labels": _single_chunk(contents.test.labels[test]),
        }
        if contents.train.domains is not None:
            arrays["domains"] = _single_chunk(contents.train.domains[train])
        facts = {
            "class_names": contents.class_names[: self.classes],
            "domain_names": contents.domain_names,
        }
        return cache.make_entry(self.root_folder, self.key, arrays, facts, contents.sources)

    def _selected(
        self, contents: Contents, what: Literal["train", "test"]
    ) -> npt.NDArray[np.int64]:
        split: Split = getattr(contents, what)
        return self.choose(split.labels, len(contents.class_names), what, split.domains)

    def _image_chunks(
        self, split: Split, positions: npt.NDArray[np.int64], what: str
    ) -> cache.Chunks:
        title = f"{self.name}: decoding {what} images"

        def chunks() -> Iterator[npt.NDArray[Any]]:
            with progress(title, len(positions), "images") as advance:
                for start in range(0, len(positions), IMAGES_PER_CHUNK):
                    part = positions[start : start + IMAGES_PER_CHUNK]
                    yield split.fetch(part, self.image_size)
                    advance(len(part))

        return cache.Chunks(len(positions), chunks)


def _single_chunk(array: npt.NDArray[np.int64]) -> cache.Chunks:
    return cache.Chunks(len(array), lambda: [array])


@dataclass(frozen=True)
class UserFiles(StoredDataset):
    """A dataset in files of the user, with classes and counts that are not known in advance."""

    flip: bool = field(default=False, metadata={"view": True})
    """Whether a horizontally flipped image keeps its class."""

    def find_path(self, name: str, option: str) -> Path:
        """Return the path of a file or folder, below the root or in the working directory."""
        if not name:
            raise SteradError(f"the dataset {self.name} needs {option}: give its path")
        candidates = (self.root_folder / name, Path(name))
        for path in candidates:
            if path.exists():
                return path
        missing = " or ".join(repr(str(path)) for path in dict.fromkeys(candidates))
        raise SteradError(f"there is no {missing}: correct {option} or --root")

    def user_path(self) -> Path:
        """Return the file or folder of the user; raise if it is missing."""
        raise NotImplementedError

    def location(self) -> str:
        """Return the path below the root, however it was written, or the full path elsewhere."""
        path, root = self.user_path().resolve(), self.root_folder.resolve()
        return str(path.relative_to(root) if path.is_relative_to(root) else path)

    def allows_flip(self) -> bool:
        """Return whether a horizontally flipped image keeps its class."""
        return self.flip

    def defaults(self) -> Defaults:
        """Return tasks and blur from the counts, which are in the cache after the first load."""
        entry = cache.find_entry(self.root_folder, self.key)
        if entry is not None:
            classes, images = len(entry.facts["class_names"]), len(entry.arrays["train_labels"])
        else:
            contents = self.contents()
            classes = self.classes or len(contents.class_names)
            labels = contents.train.labels
            images = len(self.choose(labels, len(contents.class_names), "train"))
        return Defaults.for_counts(classes, images)
