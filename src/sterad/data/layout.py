"""Folder layouts of the official archives, and the search for them in the data root."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.data.sources import SOURCES
from sterad.errors import SteradError


def data_root(root: Path | None) -> Path:
    """Return the folder of the datasets: `root`, else STERAD_DATA, else `data`."""
    return Path(os.environ.get("STERAD_DATA") or "data") if root is None else root


@dataclass(frozen=True)
class Layout:
    """A folder and the files that it must contain, each with one or more accepted names."""

    folder: str
    files: tuple[tuple[str, ...], ...]

    def missing(self, home: Path) -> list[str]:
        """Return the names of the files that are not in `home`."""
        return [names[0] for names in self.files if not any((home / n).exists() for n in names)]

    def paths(self, home: Path) -> list[Path]:
        """Return the paths of the files in `home`, which must contain all of them."""
        return [next(home / n for n in names if (home / n).exists()) for names in self.files]


def find_layout(
    name: str, root: Path, layouts: Sequence[Layout], other_folders: Sequence[Path] = ()
) -> tuple[Path, Layout]:
    """Return the folder that contains a complete dataset, and its layout.

    Searched are the folder of each layout in `root`, `root` itself, and `other_folders`.
    """
    incomplete = []
    for layout in layouts:
        for home in (root / layout.folder, root, *other_folders):
            missing = layout.missing(home)
            if not missing:
                return home, layout
            # A root may contain an unrelated `train` or `s1`, so the folder name must match too.
            if len(missing) < len(layout.files) and home.match(layout.folder):
                incomplete.append((home, missing))
    if incomplete:
        home, missing = incomplete[0]
        raise SteradError(
            f"{name} in {str(home)!r} lacks {', '.join(missing)}: move that folder elsewhere and "
            f"run `sterad data get {name} --root {root}`, or unpack the official archive again"
        )
    raise _not_found(name, root, layouts[0].folder)


def _not_found(name: str, root: Path, folder: str) -> SteradError:
    """Return the error for a dataset without any files."""
    if not root.exists():
        found = f"there is no folder {str(root)!r}"
    else:
        found = f"there is no {name} in {str(root)!r}"
    archives = [remote for choice in SOURCES[name].choices for remote in choice if remote.unpacks]
    for remote in archives:
        if (root / remote.path).exists():
            found += f", only the archive {remote.path}"
    return SteradError(
        f"{found}: set --root or STERAD_DATA to the folder that contains {folder!r}, or run "
        f"`sterad data get {name} --root {root}`"
    )
