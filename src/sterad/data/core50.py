"""`core50`: 50 objects in 11 sessions at 128x128 pixels, in the NI protocol.

V. Lomonaco, D. Maltoni, "CORe50: a New Dataset and Benchmark for Continuous Object Recognition",
2017, https://arxiv.org/abs/1705.03550. A label is the place of the object's folder in alphabetical
order (o1, o10, o11, ...). Sessions 3, 7 and 10 are for testing, the others are the domains.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sterad.data.contents import Contents, Split
from sterad.data.description import DATASETS
from sterad.data.image_files import ImageFiles, listed
from sterad.data.layout import Layout, find_layout
from sterad.data.stored import Stored
from sterad.errors import SteradError

SIDE = 128
TEST_SESSIONS = (3, 7, 10)
TRAIN_SESSIONS = tuple(n for n in range(1, 12) if n not in TEST_SESSIONS)
LAYOUT = Layout("core50_128x128", tuple((f"s{n}",) for n in range(1, 12)))


@DATASETS.register("core50", alias=("core", "seq-core50"))
@dataclass(frozen=True)
class Core50(Stored):
    """CORe50: 119,894 and 44,972 frames of 128x128 pixels of 50 hand-held objects."""

    name: ClassVar[str] = "core50"

    def contents(self) -> Contents:
        """List the folders of all sessions."""
        home, _ = find_layout(self.name, self.place, (LAYOUT,))
        objects = _objects(home)
        sessions = [home / f"s{n}" for n in (*TRAIN_SESSIONS, *TEST_SESSIONS)]
        return Contents(
            train=_split(home, TRAIN_SESSIONS, objects, "train"),
            test=_split(home, TEST_SESSIONS, objects, "test"),
            class_names=tuple(objects),
            sources=(*sessions, *(session / one for session in sessions for one in objects)),
            domain_names=tuple(f"s{n}" for n in TRAIN_SESSIONS),
        )


def _objects(home: Path) -> list[str]:
    """Return the folders of objects, which must be the same in every session."""
    first, *others = (
        sorted(one.name for one in (home / f"s{n}").iterdir() if one.is_dir())
        for n in (*TRAIN_SESSIONS, *TEST_SESSIONS)
    )
    for number, objects in zip((*TRAIN_SESSIONS, *TEST_SESSIONS)[1:], others, strict=True):
        if objects != first:
            odd = sorted(set(first) ^ set(objects))[0]
            raise SteradError(
                f"the object {odd!r} is in one of the sessions s{TRAIN_SESSIONS[0]} and "
                f"s{number} of {str(home)!r} and not in the other: unpack the archive again"
            )
    if len(first) < 2:
        raise SteradError(f"{str(home)!r} holds {len(first)} objects: it must hold two or more")
    return first


def _split(home: Path, sessions: tuple[int, ...], objects: list[str], what: str) -> Split:
    folders = [home / f"s{number}" / one for number in sessions for one in objects]
    files = [listed(folder) for folder in folders]
    for folder, found in zip(folders, files, strict=True):
        if not found:
            raise SteradError(f"there is no image in {str(folder)!r}: unpack the archive again")
    counts = [len(found) for found in files]
    labels = np.repeat(np.tile(np.arange(len(objects)), len(sessions)), counts)
    domains = np.repeat(np.repeat(np.arange(len(sessions)), len(objects)), counts)
    images = ImageFiles(what, [path for found in files for path in found], SIDE)
    return Split(labels, images.fetch, domains)
