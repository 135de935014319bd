"""`tiny-imagenet`: 200 classes of ImageNet at 64x64 pixels; the val split is for testing.

From Stanford's course CS231n, http://cs231n.stanford.edu. A label is the line of the class in
wnids.txt, among the classes whose train folder is there: a copy with fewer classes works.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sterad.data.contents import Contents, Split
from sterad.data.description import DATASETS
from sterad.data.image_files import ImageFiles, listed
from sterad.data.layout import Layout, find_layout
from sterad.data.sources import SOURCES
from sterad.data.stored import Stored
from sterad.errors import SteradError

SIDE = 64
LAYOUT = Layout("tiny-imagenet-200", (("wnids.txt",), ("train",), ("val/val_annotations.txt",)))


@DATASETS.register(
    "tiny-imagenet", alias=("tiny", "tinyimagenet", "tinyimg", "seq-tinyimg", "split-tinyimagenet")
)
@dataclass(frozen=True)
class TinyImageNet(Stored):
    """Tiny ImageNet: 100,000 and 10,000 colour photographs of 64x64 pixels, 200 classes."""

    name: ClassVar[str] = "tiny-imagenet"

    def contents(self) -> Contents:
        """List the train folders and the val annotations."""
        home, _ = find_layout(self.name, self.place, (LAYOUT,))
        wnids = present_classes(home)
        if len(wnids) < 2:
            raise SteradError(
                f"{str(home / 'train')!r} holds {len(wnids)} of the classes in wnids.txt: "
                "it must hold two or more"
            )
        return Contents(
            train=_train(home, wnids),
            test=_val(home, wnids),
            class_names=_names(home, wnids),
            sources=(
                home / "wnids.txt",
                home / "train",
                *(home / "train" / wnid for wnid in wnids),
                *(home / "train" / wnid / "images" for wnid in wnids),
                home / "val" / "val_annotations.txt",
                home / "val" / "images",
            ),
        )

    def there(self) -> tuple[int, int]:
        """Count the classes that are there; where none is, the official number."""
        official = SOURCES[self.name]
        for home in (self.place / LAYOUT.folder, self.place):
            if not LAYOUT.missing(home):
                classes = len(present_classes(home)) or official.classes
                return classes, classes * official.train // official.classes
        return official.classes, official.train


def present_classes(home: Path) -> list[str]:
    """Return the classes of wnids.txt that have a train folder, in the order of the file."""
    wnids = (home / "wnids.txt").read_text().split()
    return [wnid for wnid in wnids if (home / "train" / wnid).is_dir()]


def _train(home: Path, wnids: list[str]) -> Split:
    folders = [listed(home / "train" / wnid / "images") for wnid in wnids]
    for wnid, folder in zip(wnids, folders, strict=True):
        if not folder:
            raise SteradError(
                f"the class {wnid} has no image in {str(home / 'train' / wnid / 'images')!r}: "
                "unpack the official archive again"
            )
    labels = np.repeat(np.arange(len(wnids)), [len(folder) for folder in folders])
    files = ImageFiles("train", [path for folder in folders for path in folder], SIDE)
    return Split(labels, files.fetch)


def _val(home: Path, wnids: list[str]) -> Split:
    label_of = {wnid: label for label, wnid in enumerate(wnids)}
    paths, labels = [], []
    annotations = home / "val" / "val_annotations.txt"
    for number, line in enumerate(annotations.read_text().splitlines(), start=1):
        words = line.split("\t")
        if len(words) < 2:
            raise SteradError(
                f"line {number} of {str(annotations)!r} is {line!r}: it must hold a file and a "
                "class; unpack the official archive again"
            )
        if words[1] in label_of:
            paths.append(str(home / "val" / "images" / words[0]))
            labels.append(label_of[words[1]])
    if not paths:
        raise SteradError(f"{str(annotations)!r} names no image of the classes that are there")
    return Split(np.array(labels, np.int64), ImageFiles("val", paths, SIDE).fetch)


def _names(home: Path, wnids: list[str]) -> tuple[str, ...]:
    """Return the first word for each class from words.txt, or its id where there is none."""
    words: dict[str, str] = {}
    if (home / "words.txt").is_file():
        for line in (home / "words.txt").read_text().splitlines():
            wnid, _, meaning = line.partition("\t")
            words[wnid] = meaning.split(",")[0].strip()
    return tuple(words.get(wnid) or wnid for wnid in wnids)
