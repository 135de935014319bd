"""`tiny-imagenet`: 200 classes of ImageNet at 64x64 pixels; the val split is the test split.

From the Stanford course CS231n, http://cs231n.stanford.edu. Labels follow the order of wnids.txt,
limited to the classes with a train folder, so that a copy with fewer classes can be used.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sterad.data.arrays import IntArray
from sterad.data.dataset_config import DATASETS
from sterad.data.file_dataset import Contents, FileDataset, Layout, Split
from sterad.data.image_files import ImageFiles, list_class_images
from sterad.data.sources import OFFICIAL_REMEDY, SOURCES, invalid_file
from sterad.files import reading

IMAGE_SIZE = 64
LAYOUT = Layout("tiny-imagenet-200", (("wnids.txt",), ("train",), ("val/val_annotations.txt",)))


@DATASETS.register(
    "tiny-imagenet", alias=("tiny", "tinyimagenet", "tinyimg", "seq-tinyimg", "split-tinyimagenet")
)
@dataclass(frozen=True)
class TinyImageNet(FileDataset):
    """Tiny ImageNet: 100,000 training and 10,000 test images of 64x64 pixels, 200 classes."""

    name: ClassVar[str] = "tiny-imagenet"

    def contents(self) -> Contents:
        """List the train folders and the val annotations."""
        home, _ = self.find_layout(LAYOUT)
        wnids = present_classes(home)
        if len(wnids) < 2:
            problem = f"has {len(wnids)} of the classes in wnids.txt and must have two or more"
            raise invalid_file(home / "train", problem)
        folders = [home / "train" / wnid / "images" for wnid in wnids]
        paths, labels = list_class_images(folders, OFFICIAL_REMEDY)
        val_paths, val_labels = _list_val_images(home, wnids)
        return Contents(
            train=Split(
                labels, ImageFiles(paths, (IMAGE_SIZE, IMAGE_SIZE), self.target_size).fetch
            ),
            test=Split(
                val_labels, ImageFiles(val_paths, (IMAGE_SIZE, IMAGE_SIZE), self.target_size).fetch
            ),
            class_names=_read_names(home, wnids),
            sources=(
                home / "wnids.txt",
                home / "train",
                *(folder.parent for folder in folders),
                *folders,
                home / "val" / "val_annotations.txt",
                home / "val" / "images",
                *map(Path, paths + val_paths),
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


def _read_text(path: Path) -> str:
    with reading(path, OFFICIAL_REMEDY):
        return path.read_text("utf-8")


def present_classes(home: Path) -> list[str]:
    """Return the classes of wnids.txt that have a train folder, in the order of the file."""
    wnids = _read_text(home / "wnids.txt").split()
    return [wnid for wnid in wnids if (home / "train" / wnid).is_dir()]


def _list_val_images(home: Path, wnids: list[str]) -> tuple[list[str], IntArray]:
    label_of = {wnid: label for label, wnid in enumerate(wnids)}
    paths, labels = [], []
    annotations = home / "val" / "val_annotations.txt"
    for number, line in enumerate(_read_text(annotations).splitlines(), start=1):
        words = line.split("\t")
        if len(words) < 2:
            problem = f"has the line {number}, {line!r}, which must be a file name and a class"
            raise invalid_file(annotations, problem)
        if words[1] in label_of:
            paths.append(str(home / "val" / "images" / words[0]))
            labels.append(label_of[words[1]])
    if not paths:
        raise invalid_file(annotations, f"lists no image of the classes in {str(home / 'train')!r}")
    return paths, np.array(labels, np.int64)


def _read_names(home: Path, wnids: list[str]) -> tuple[str, ...]:
    """Return the first name of each class in words.txt, or its id if there is none."""
    words: dict[str, str] = {}
    if (home / "words.txt").is_file():
        for line in _read_text(home / "words.txt").splitlines():
            wnid, _, meaning = line.partition("\t")
            words[wnid] = meaning.split(",")[0].strip()
    return tuple(words.get(wnid) or wnid for wnid in wnids)
