"""`core50`: 50 objects in 11 sessions at 128x128 pixels, in the NI (new instances) protocol.

V. Lomonaco, D. Maltoni, "CORe50: a New Dataset and Benchmark for Continuous Object Recognition",
2017, https://arxiv.org/abs/1705.03550. Labels follow the alphabetical order of the object folders
(o1, o10, o11, ...). Sessions 3, 7 and 10 are the test split, the others are the domains.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sterad.data.description import DATASETS
from sterad.data.image_files import ImageFiles, list_images
from sterad.data.sources import Layout, find_layout
from sterad.data.stored import Contents, Split, StoredDataset
from sterad.errors import SteradError

IMAGE_SIZE = 128
TEST_SESSIONS = (3, 7, 10)
TRAIN_SESSIONS = tuple(n for n in range(1, 12) if n not in TEST_SESSIONS)
LAYOUT = Layout("core50_128x128", tuple((f"s{n}",) for n in range(1, 12)))


@DATASETS.register("core50", alias=("core", "seq-core50"))
@dataclass(frozen=True)
class Core50(StoredDataset):
    """CORe50: 119,894 training and 44,972 test frames of 128x128 pixels, 50 objects."""

    name: ClassVar[str] = "core50"

    def contents(self) -> Contents:
        """List the folders of all sessions."""
        home, _ = find_layout(self.name, self.root_folder, (LAYOUT,))
        objects = _list_objects(home)
        sessions = [home / f"s{n}" for n in (*TRAIN_SESSIONS, *TEST_SESSIONS)]
        return Contents(
            train=_split(home, TRAIN_SESSIONS, objects, "train"),
            test=_split(home, TEST_SESSIONS, objects, "test"),
            class_names=tuple(objects),
            sources=(*sessions, *(session / name for session in sessions for name in objects)),
            domain_names=tuple(f"s{n}" for n in TRAIN_SESSIONS),
        )


def _list_objects(home: Path) -> list[str]:
    """Return the names of the object folders, which must be equal in all sessions."""
    first, *others = (
        sorted(path.name for path in (home / f"s{n}").iterdir() if path.is_dir())
        for n in (*TRAIN_SESSIONS, *TEST_SESSIONS)
    )
    for number, objects in zip((*TRAIN_SESSIONS, *TEST_SESSIONS)[1:], others, strict=True):
        if objects != first:
            name = sorted(set(first) ^ set(objects))[0]
            raise SteradError(
                f"the object {name!r} is in only one of the sessions s{TRAIN_SESSIONS[0]} and "
                f"s{number} of {str(home)!r}: unpack the official archive again"
            )
    if len(first) < 2:
        raise SteradError(
            f"{str(home)!r} has {len(first)} objects and must have two or more: unpack the "
            "official archive again"
        )
    return first


def _split(home: Path, sessions: tuple[int, ...], objects: list[str], what: str) -> Split:
    folders = [home / f"s{number}" / name for number in sessions for name in objects]
    files = [list_images(folder) for folder in folders]
    for folder, found in zip(folders, files, strict=True):
        if not found:
            raise SteradError(
                f"there is no image in {str(folder)!r}: unpack the official archive again"
            )
    counts = [len(found) for found in files]
    labels = np.repeat(np.tile(np.arange(len(objects)), len(sessions)), counts)
    domains = np.repeat(np.repeat(np.arange(len(sessions)), len(objects)), counts)
    images = ImageFiles(what, [path for found in files for path in found], IMAGE_SIZE)
    return Split(labels, images.fetch, domains)
