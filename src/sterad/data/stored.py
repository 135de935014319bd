"""Stored: the base of every dataset that lies in files, decoded once and memory-mapped."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sterad.data import cache
from sterad.data.contents import Contents, Split
from sterad.data.dataset import Dataset
from sterad.data.description import Defaults, equal_tasks
from sterad.data.digest import content_digest
from sterad.data.layout import data_root
from sterad.data.progress import progress
from sterad.data.sources import SOURCES
from sterad.data.subset import Subset

AT_ONCE = 512
"""Images decoded before they are written: bounds the memory, whatever the number of images."""
SCALE = 1500.0
"""Scale of the paper's blur, for all training images of a dataset."""


@dataclass(frozen=True)
class Stored(Subset):
    """A dataset in files; a subclass says what it finds there."""

    root: Path | None = field(default=None, metadata={"place": True})
    """Where the data lie; the environment variable STERAD_DATA by default, else `data`."""

    name: ClassVar[str]
    flips: ClassVar[bool] = True

    @property
    def place(self) -> Path:
        """Return the root that is meant."""
        return data_root(self.root)

    def mirrored(self) -> bool:
        """Say whether a mirrored image keeps its class."""
        return self.flips

    def contents(self) -> Contents:
        """Return what lies there, or say what is missing and how to get it."""
        raise NotImplementedError

    def load(self) -> Dataset:
        """Map the decoded images; the first time, decode them."""
        entry = cache.find(self.place, self.key) or self._decoded()
        arrays, facts = entry.arrays, entry.facts
        # Labels are small and read often: in memory they are plain.
        labels = {name: np.array(one) for name, one in arrays.items() if "images" not in name}
        return Dataset(
            name=self.name,
            train_images=arrays["train_images"],
            train_labels=labels["train_labels"],
            test_images=arrays["test_images"],
            test_labels=labels["test_labels"],
            class_names=tuple(facts["class_names"]),
            flip=self.mirrored(),
            domains=labels.get("domains"),
            domain_names=tuple(facts["domain_names"]),
            known_digest=content_digest(entry.digests, facts["class_names"]),
        )

    def require(self) -> None:
        """Refuse where the files are missing, in the sentence that `load` would say."""
        if cache.find(self.place, self.key) is None:
            self.contents()

    def defaults(self) -> Defaults:
        """Return the paper's tasks and blur, scaled to what is taken; nothing is loaded."""
        official = SOURCES[self.name]
        classes, images = self.counted(*self.there())
        scale = SCALE * images / official.train
        return Defaults(width=64, tasks=equal_tasks(classes, official.tasks), scale=scale)

    def there(self) -> tuple[int, int]:
        """Return the classes and training images before any are left out."""
        return SOURCES[self.name].classes, SOURCES[self.name].train

    @property
    def key(self) -> str:
        """Return the name of the cache entry: all options that change the images."""
        skipped = {
            one.name for one in dataclasses.fields(self) if {"place", "view"} & set(one.metadata)
        }
        options = {k: v for k, v in dataclasses.asdict(self).items() if k not in skipped}
        text = json.dumps(options, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def _decoded(self) -> cache.Entry:
        contents = self.contents()
        train = self._chosen(contents, "train")
        test = self._chosen(contents, "test")
        arrays = {
            "train_images": self._pieces(contents.train, train, "training"),
            "test_images": self._pieces(contents.test, test, "test"),
            "train_labels": _whole(contents.train.labels[train]),
            "test_labels": _whole(contents.test.labels[test]),
        }
        if contents.train.domains is not None:
            arrays["domains"] = _whole(contents.train.domains[train])
        facts = {
            "class_names": contents.class_names[: self.classes],
            "domain_names": contents.domain_names,
        }
        return cache.make(self.place, self.key, arrays, facts, contents.sources)

    def _chosen(self, contents: Contents, what: Literal["train", "test"]) -> npt.NDArray[np.int64]:
        split: Split = getattr(contents, what)
        return self.choose(split.labels, len(contents.class_names), what, split.domains)

    def _pieces(self, split: Split, chosen: npt.NDArray[np.int64], what: str) -> cache.Pieces:
        title = f"{self.name}: decoding {what} images"

        def begin() -> Iterator[npt.NDArray[Any]]:
            with progress(title, len(chosen), "images") as advance:
                for start in range(0, len(chosen), AT_ONCE):
                    part = chosen[start : start + AT_ONCE]
                    yield split.fetch(part, self.image_size)
                    advance(len(part))

        return cache.Pieces(len(chosen), begin)


def _whole(array: npt.NDArray[np.int64]) -> cache.Pieces:
    return cache.Pieces(len(array), lambda: [array])
