"""Official files of the named datasets: URLs, checksums, sizes, counts, licenses (sources.toml)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from sterad.errors import SteradError

OFFICIAL_REMEDY = "download or unpack the official files again"


@dataclass(frozen=True)
class Remote:
    """One file on an official server."""

    url: str
    size: int
    """Size in bytes; without a checksum, within SIZE_TOLERANCE of the real size."""
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
    class_names: tuple[str, ...]
    """Names of the classes for files without names (default: their numbers)."""
    md5: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the unpacked, uncompressed files by path."""
    flip: bool = True
    """Whether a horizontally flipped image keeps its class."""

    @property
    def size(self) -> int:
        """Size of the download in bytes."""
        return sum(remote.size for remote in self.choices[0])


def _read_sources() -> dict[str, Source]:
    tables = tomllib.loads(files("sterad.data").joinpath("sources.toml").read_text("utf-8"))
    for table in tables.values():
        choices: dict[int, list[Remote]] = {}
        for file in table.pop("files"):
            choices.setdefault(file.pop("choice", 0), []).append(Remote(**file))
        table["choices"] = tuple(map(tuple, choices.values()))
        table["image"] = tuple(table["image"])
        table["class_names"] = tuple(table.get("class_names", map(str, range(table["classes"]))))
    return {name: Source(**table) for name, table in tables.items()}


SOURCES = _read_sources()


def invalid_file(path: Path, problem: str) -> SteradError:
    """Return the error for a file or folder of an official dataset that has a problem."""
    return SteradError(f"{str(path)!r} {problem}: {OFFICIAL_REMEDY}")
