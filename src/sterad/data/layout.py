"""Layout: the folder and files that an official archive unpacks to, and where they are found."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.data.sources import SOURCES
from sterad.errors import SteradError


def data_root(root: Path | None) -> Path:
    """Return where data lie: the place that is given, else STERAD_DATA, else `data`."""
    return Path(os.environ.get("STERAD_DATA") or "data") if root is None else root


@dataclass(frozen=True)
class Layout:
    """A folder and the files that must lie in it, each under one of several spellings."""

    folder: str
    files: tuple[tuple[str, ...], ...]

    def missing(self, home: Path) -> list[str]:
        """Return the files that are not in `home`."""
        return [names[0] for names in self.files if not any((home / n).exists() for n in names)]

    def paths(self, home: Path) -> list[Path]:
        """Return the files in `home`, which holds them all."""
        return [next(home / n for n in names if (home / n).exists()) for names in self.files]


def find_layout(
    name: str, root: Path, layouts: Sequence[Layout], elsewhere: Sequence[Path] = ()
) -> tuple[Path, Layout]:
    """Return the folder that holds a dataset whole and the layout that it has.

    Looked at are the layout's folder under `root`, `root` itself, and folders `elsewhere`.
    """
    begun = []
    for layout in layouts:
        for home in (root / layout.folder, root, *elsewhere):
            missing = layout.missing(home)
            if not missing:
                return home, layout
            # A root may hold a `train` or `s1` of anything: it counts as begun by its name alone.
            if len(missing) < len(layout.files) and home.match(layout.folder):
                begun.append((home, missing))
    if begun:
        home, missing = begun[0]
        raise SteradError(
            f"{name} in {str(home)!r} lacks {', '.join(missing)}: move that folder away and run "
            f"`sterad data get {name} --root {root}`, or unpack the official archive again"
        )
    raise absent(name, root, layouts[0].folder)


def absent(name: str, root: Path, folder: str) -> SteradError:
    """Return the error for a dataset of which nothing is there."""
    if not root.exists():
        found = f"there is no folder {str(root)!r}"
    else:
        found = f"there is no {name} in {str(root)!r}"
    archives = [remote for choice in SOURCES[name].choices for remote in choice if remote.unpacks]
    for remote in archives:
        if (root / remote.path).exists():
            found += f", only {remote.path}, which is not unpacked"
    return SteradError(
        f"{found}: say where the folder {folder!r} lies with --root DATA or STERAD_DATA, or run "
        f"`sterad data get {name} --root {root}`"
    )
