"""Decoded once: arrays on disk, memory-mapped, shared by every process that reads them.

An entry is a folder of .npy files and a manifest with the sizes and times of the source files and
the checksums of the arrays. It is made in a temporary folder and renamed, so it is there whole or
not at all. Opening compares sizes, which is quick; `sterad data check` reads every byte.
"""

import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sterad.data.digest import array_bytes, array_digest, array_header
from sterad.data.lock import locked
from sterad.errors import SteradError

FORMAT = 2
MANIFEST = "manifest.json"
T = TypeVar("T")


class DamagedError(Exception):
    """An entry is not what its manifest says."""


class StaleError(Exception):
    """An entry was made from files that have changed since."""


@dataclass(frozen=True)
class Entry:
    """The arrays of one dataset in one cut, and the facts that were kept with them."""

    arrays: Mapping[str, npt.NDArray[Any]]
    digests: Mapping[str, str]
    """What `array_digest` gave for each array when it was written."""
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Pieces:
    """An array that is too large to hold at once: how many rows, and a way to begin them."""

    rows: int
    begin: Callable[[], Iterable[npt.NDArray[Any]]]


def places(root: Path) -> tuple[Path, ...]:
    """Return where entries of `root` lie: beside the data or, where it is read-only, the user's."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
    fallback = Path(user) / "sterad" / digest
    return (root / ".sterad", fallback) if root.is_dir() else (fallback,)


def find(root: Path, key: str) -> Entry | None:
    """Return the entry `key` if it is whole and its sources are unchanged; name damage."""
    for place in places(root):
        try:
            return open_entry(root, place / key)
        except StaleError:
            continue
        except DamagedError as error:
            print(f"sterad: {place / key}: {error}; it is made again", file=sys.stderr)
    return None


def open_entry(root: Path, folder: Path) -> Entry:
    """Map the arrays of an entry after comparing sizes, shapes and the times of the sources."""
    manifest = read_manifest(folder)
    if _stamps(root, map(Path, manifest["sources"])) != manifest["sources"]:
        raise StaleError
    arrays = {name: _mapped(folder / name, kept) for name, kept in manifest["arrays"].items()}
    digests = {name: str(kept["sha256"]) for name, kept in manifest["arrays"].items()}
    return Entry(_named(arrays), _named(digests), manifest["facts"])


def _named(by_file: Mapping[str, T]) -> dict[str, T]:
    return {name.removesuffix(".npy"): one for name, one in by_file.items()}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what was written when the entry was made."""
    if not folder.is_dir():
        raise StaleError
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
        known = manifest["format"] == FORMAT and {"sources", "arrays", "facts"} <= set(manifest)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"the manifest cannot be read ({error})") from error
    if not known:
        raise StaleError
    return manifest


def _mapped(file: Path, kept: Mapping[str, Any]) -> npt.NDArray[Any]:
    try:
        if file.stat().st_size != kept["bytes"]:
            raise DamagedError(
                f"{file.name} has {file.stat().st_size} bytes and had {kept['bytes']}"
            )
        array: npt.NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DamagedError(f"{file.name} cannot be read ({error})") from error
    if [list(array.shape), array.dtype.str] != [kept["shape"], kept["dtype"]]:
        raise DamagedError(
            f"{file.name} is {array.dtype} of shape {array.shape}, not as it was made"
        )
    return array


def verify(folder: Path) -> None:
    """Read every byte of an entry and compare checksums; raise where one differs."""
    for name, kept in read_manifest(folder)["arrays"].items():
        array = _mapped(folder / name, kept)
        if array_digest(array) != kept["sha256"]:
            raise DamagedError(f"the checksum of {name} differs")


def make(
    root: Path,
    key: str,
    arrays: Mapping[str, Pieces],
    facts: Mapping[str, Any],
    sources: Iterable[Path],
) -> Entry:
    """Write an entry and open it.

    Where another process made it meanwhile, that one is opened.
    """
    refusals = []
    for place in places(root):
        try:
            place.mkdir(parents=True, exist_ok=True)
            with locked(place / "lock", f"decoding {key}"):
                _remove_leftovers(place)
                with suppress(StaleError, DamagedError):
                    return open_entry(root, place / key)
                stamps = _stamps(root, [_from_root(root, source) for source in sources])
                _write(place, key, arrays, facts, stamps)
                return open_entry(root, place / key)
        except OSError as error:
            refusals.append(f"{place}: {error.strerror or error}")
    raise SteradError(
        f"cannot keep the decoded images ({'; '.join(refusals)}): make room or make one of these "
        "places writable, or set XDG_CACHE_HOME to a folder that is"
    )


def _write(
    place: Path,
    key: str,
    arrays: Mapping[str, Pieces],
    facts: Mapping[str, Any],
    stamps: Mapping[str, list[int]],
) -> None:
    fresh, old = place / f".{key}.new.tmp", place / f".{key}.old.tmp"
    try:
        fresh.mkdir()
        kept = {f"{name}.npy": _save(fresh / f"{name}.npy", p) for name, p in arrays.items()}
        manifest = {"format": FORMAT, "facts": facts, "sources": stamps, "arrays": kept}
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1))
        # No fsync: a file that a power cut leaves short is found by its size, and made again.
        if (place / key).exists():
            os.rename(place / key, old)
        os.rename(fresh, place / key)
    finally:
        _remove_leftovers(place)


def _save(file: Path, pieces: Pieces) -> dict[str, Any]:
    found, like = hashlib.sha256(), None
    with open(file, "wb") as out:
        for piece in pieces.begin():
            if like is None:
                like = piece
                shape = (pieces.rows, *like.shape[1:])
                found.update(array_header(like.dtype, shape))
                described = {"descr": like.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(out, described)
            out.write(array_bytes(piece))
            found.update(array_bytes(piece))
    if like is None:
        raise SteradError(f"there is nothing to keep in {file.stem}: give at least one image")
    kept = {"bytes": file.stat().st_size, "shape": list(shape), "dtype": like.dtype.str}
    return kept | {"sha256": found.hexdigest()}


def _from_root(root: Path, source: Path) -> Path:
    """Return a source as it is named from `root`, so that both can move; elsewhere its full path.

    A relative source is one of the working folder, and `root` may be relative itself.
    """
    return source.relative_to(root) if source.is_relative_to(root) else source.absolute()


def _stamps(root: Path, names: Iterable[Path]) -> dict[str, list[int]]:
    """Return size, time and inode of each source; of a folder, the time alone."""
    stamps = {}
    for name in names:
        with suppress(OSError):
            found = os.stat(root / name)  # a full path stays itself
            folder = stat.S_ISDIR(found.st_mode)
            size, inode = (0, 0) if folder else (found.st_size, found.st_ino)
            stamps[str(name)] = [size, found.st_mtime_ns, inode]
    return stamps


def _remove_leftovers(place: Path) -> None:
    """Remove what a killed process left; only while the lock is held."""
    for leftover in place.glob(".*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)
