"""`tiny-imagenet`: 200 classes of ImageNet at 64x64 pixels; the val split is the test split.

From the Stanford course CS231n, http://cs231n.stanford.edu. Labels follow the order of wnids.txt,
limited to the classes with a train folder, so that a copy with fewer classes can be used.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sterad.data.description import DATASETS
from sterad.data.image_files import ImageFiles, list_images
from sterad.data.sources import SOURCES, Layout, find_layout
from sterad.data.stored import Contents, Split, StoredDataset
from sterad.errors import SteradError

IMAGE_SIZE = 64
LAYOUT = Layout("tiny-imagenet-200", (("wnids.txt",), ("train",), ("val/val_annotations.txt",)))


@DATASETS.register(
    "tiny-imagenet", alias=("tiny", "tinyimagenet", "tinyimg", "seq-tinyimg", "split-tinyimagenet")
)
@dataclass(frozen=True)
class TinyImageNet(StoredDataset):
    """Tiny ImageNet: 100,000 training and 10,000 test images of 64x64 pixels, 200 classes."""

    name: ClassVar[str] = "tiny-imagenet"

    def contents(self) -> Contents:
        """List the train folders and the val annotations."""
        home, _ = find_layout(self.name, self.root_folder, (LAYOUT,))
        wnids = present_classes(home)
        if len(wnids) < 2:
            raise SteradError(
                f"{str(home / 'train')!r} has {len(wnids)} of the classes in wnids.txt and must "
                "have two or more: unpack the official archive again"
            )
        return Contents(
            train=_train_split(home, wnids),
            test=_val_split(home, wnids),
            class_names=_read_names(home, wnids),
            sources=(
                home / "wnids.txt",
                home / "train",
                *(home / "train" / wnid for wnid in wnids),
                *(home / "train" / wnid / "images" for wnid in wnids),
                home / "val" / "val_annotations.txt",
                home / "val" / "images",
            ),
        )

    def full_counts(self) -> tuple[int, int]:
        """Count the classes on disk; return the official numbers if there are none."""
        official = SOURCES[self.name]
        for home in (self.root_folder / LAYOUT.folder, self.root_folder):
            if not LAYOUT.missing(home):
                classes = len(present_classes(home)) or official.classes
                return classes, classes * official.train // official.classes
        return official.classes, official.train


def present_classes(home: Path) -> list[str]:
    """Return the classes of wnids.txt that have a train folder, in the order of the file."""
    wnids = (home / "wnids.txt").read_text().split()
    return [wnid for wnid in wnids if (home / "train" / wnid).is_dir()]


def _train_split(home: Path, wnids: list[str]) -> Split:
    folders = [list_images(home / "train" / wnid / "images") for wnid in wnids]
    for wnid, folder in zip(wnids, folders, strict=True):
        if not folder:
            raise SteradError(
                f"the class {wnid} has no image in {str(home / 'train' / wnid / 'images')!r}: "
                "unpack the official archive again"
            )
    labels = np.repeat(np.arange(len(wnids)), [len(folder) for folder in folders])
    files = ImageFiles("train", [path for folder in folders for path in folder], IMAGE_SIZE)
    return Split(labels, files.fetch)


def _val_split(home: Path, wnids: list[str]) -> Split:
    label_of = {wnid: label for label, wnid in enumerate(wnids)}
    paths, labels = [], []
    annotations = home / "val" / "val_annotations.txt"
    for number, line in enumerate(annotations.read_text().splitlines(), start=1):
        words = line.split("\t")
        if len(words) < 2:
            raise SteradError(
                f"line {number} of {str(annotations)!r} is {line!r} and must be a file name and a "
                "class: unpack the official archive again"
            )
        if words[1] in label_of:
            paths.append(str(home / "val" / "images" / words[0]))
            labels.append(label_of[words[1]])
    if not paths:
        raise SteradError(
            f"{str(annotations)!r} lists no image of the classes in {str(home / 'train')!r}: "
            "unpack the official archive again"
        )
    return Split(np.array(labels, np.int64), ImageFiles("val", paths, IMAGE_SIZE).fetch)


def _read_names(home: Path, wnids: list[str]) -> tuple[str, ...]:
    """Return the first name of each class in words.txt, or its id if there is none."""
    words: dict[str, str] = {}
    if (home / "words.txt").is_file():
        for line in (home / "words.txt").read_text().splitlines():
            wnid, _, meaning = line.partition("\t")
            words[wnid] = meaning.split(",")[0].strip()
    return tuple(words.get(wnid) or wnid for wnid in wnids)
