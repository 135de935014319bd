"""`core50`: 50 objects in 11 sessions at 128x128 pixels, in the NI (new instances) protocol.

V. Lomonaco, D. Maltoni, "CORe50: a New Dataset and Benchmark for Continuous Object Recognition",
2017, https://arxiv.org/abs/1705.03550. Labels follow the alphabetical order of the object folders
(o1, o10, o11, ...). Sessions 3, 7 and 10 are the test split, the others are the domains.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from sterad.data.dataset_config import DATASETS
from sterad.data.file_dataset import Contents, FileDataset, Layout, Split
from sterad.data.image_files import ImageFiles, list_class_images
from sterad.data.sources import OFFICIAL_REMEDY, invalid_file
from sterad.files import reading

IMAGE_SIZE = 128
TEST_SESSIONS = (3, 7, 10)
TRAIN_SESSIONS = tuple(n for n in range(1, 12) if n not in TEST_SESSIONS)
LAYOUT = Layout("core50_128x128", tuple((f"s{n}",) for n in range(1, 12)))


@DATASETS.register("core50", alias=("core", "seq-core50"))
@dataclass(frozen=True)
class Core50(FileDataset):
    """CORe50: 119,894 training and 44,972 test frames of 128x128 pixels, 50 objects."""

    name: ClassVar[str] = "core50"

    def contents(self) -> Contents:
        """List the folders of all sessions."""
        home, _ = self.find_layout(LAYOUT)
        objects = _list_objects(home)
        sessions = [home / f"s{n}" for n in (*TRAIN_SESSIONS, *TEST_SESSIONS)]
        train, train_paths = self._split(home, TRAIN_SESSIONS, objects)
        test, test_paths = self._split(home, TEST_SESSIONS, objects)
        folders = [session / name for session in sessions for name in objects]
        return Contents(
            train=train,
            test=test,
            class_names=tuple(objects),
            sources=(*sessions, *folders, *map(Path, train_paths + test_paths)),
            domain_names=tuple(f"s{n}" for n in TRAIN_SESSIONS),
        )

    def _split(
        self, home: Path, sessions: tuple[int, ...], objects: list[str]
    ) -> tuple[Split, list[str]]:
        folders = [home / f"s{number}" / name for number in sessions for name in objects]
        paths, folder = list_class_images(folders, OFFICIAL_REMEDY)
        domains, labels = np.divmod(folder, len(objects))
        files = ImageFiles(paths, (IMAGE_SIZE, IMAGE_SIZE), self.target_size)
        return Split(labels, files.fetch, domains), paths


def _list_objects(home: Path) -> list[str]:
    """Return the names of the object folders, which must be equal in all sessions."""
    with reading(home, OFFICIAL_REMEDY):
        sessions = {
            number: sorted(path.name for path in (home / f"s{number}").iterdir() if path.is_dir())
            for number in range(1, 12)
        }
    for number, objects in sessions.items():
        if differing := sorted(set(objects) ^ set(sessions[1])):
            problem = (
                f"has the object {differing[0]!r} in only one of the sessions s1 and s{number}"
            )
            raise invalid_file(home, problem)
    if len(sessions[1]) < 2:
        raise invalid_file(home, f"has {len(sessions[1])} objects and must have two or more")
    return sessions[1]
