"""Official files of the named datasets: where to download them, and where to find them on disk.

URLs, checksums, sizes, counts and licenses are in sources.toml.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from sterad.errors import SteradError


@dataclass(frozen=True)
class Remote:
    """One file on an official server."""

    url: str
    size: int
    """Size in bytes; it must match if there is a checksum, else it is approximate."""
    path: str
    """Path below the root to which it is downloaded."""
    md5: str | None = None
    unpacks: str | None = None
    """Folder that the archive unpacks to; None for a file that is not unpacked."""


@dataclass(frozen=True)
class Source:
    """Official files and properties of one dataset."""

    title: str
    classes: int
    train: int
    test: int
    image: tuple[int, int, int]
    """Channels, height and width."""
    tasks: int
    """Number of tasks in the paper."""
    license: str
    page: str
    choices: tuple[tuple[Remote, ...], ...]
    """Alternative sets of files, each complete; the first one is downloaded."""
    md5: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the unpacked, uncompressed files by path."""

    @property
    def size(self) -> int:
        """Size of the download in bytes."""
        return sum(remote.size for remote in self.choices[0])


def _read_sources() -> dict[str, Source]:
    tables = tomllib.loads(files("sterad.data").joinpath("sources.toml").read_text("utf-8"))
    return {name: _make_source(table) for name, table in tables.items()}


def _make_source(table: dict[str, Any]) -> Source:
    choices: dict[int, list[Remote]] = {}
    for file in table.pop("files"):
        choices.setdefault(file.pop("choice", 0), []).append(Remote(**file))
    image = tuple(table.pop("image"))
    return Source(image=image, choices=tuple(map(tuple, choices.values())), **table)


SOURCES = _read_sources()


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
