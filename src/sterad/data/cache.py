"""Cache of decoded arrays on disk, memory-mapped and shared by all processes of a user.

An entry is a folder of .npy files and a manifest with the size, times and inode of every source
file, and checksums of the sources, the arrays and the manifest itself. It is written to a temporary
folder and renamed, so that it is never visible in part.

Opening an entry compares the status of every source file and the size of every array, and reads
labels. This notices files that are added, removed, replaced or overwritten, unless the filesystem
keeps no change times. `sterad data check` reads every byte of sources and arrays.
"""

import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from sterad.data.arrays import Array, array_bytes, array_digest, array_header
from sterad.errors import SteradError
from sterad.files import reading

FORMAT = 5
MANIFEST = "manifest.json"
REMEDY = "it is decoded again when it is needed"


class StaleError(SteradError):
    """An entry is missing, has an old format, or its source files have changed."""


@dataclass(frozen=True)
class Entry:
    """The selected arrays of one dataset, and the facts stored with them."""

    arrays: Mapping[str, Array]
    digests: Mapping[str, str]
    """`array_digest` of each array when it was written."""
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Chunks:
    """An array that does not fit in memory: its number of rows, and a function to iterate it."""

    rows: int
    begin: Callable[[], Iterable[Array]]


def cache_folder(root: Path) -> Path:
    """Return the folder of the entries of `root`, in the cache of the user."""
    with reading("~/.cache", "set XDG_CACHE_HOME to a folder of your own"):
        user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]
        return user / "sterad" / name


def find_entry(root: Path, key: str) -> Entry | None:
    """Return the entry `key` if it is valid; print a warning if it is damaged."""
    try:
        return open_entry(root, key)
    except StaleError:
        return None
    except SteradError as error:
        print(f"sterad: {error}", file=sys.stderr)
        return None


def open_entry(root: Path, key: str) -> Entry:
    """Memory-map the arrays of an entry after comparing sizes, shapes and source files."""
    entry = cache_folder(root) / key
    with reading(entry, REMEDY):
        manifest = read_manifest(entry)
        if _file_stamps(root, manifest["sources"]) != manifest["sources"]:
            raise StaleError(f"the source files of {str(entry)!r} have changed: run this again")
        arrays = {
            name: _map_array(entry, name, saved) for name, saved in manifest["arrays"].items()
        }
        digests = {name: saved["sha256"] for name, saved in manifest["arrays"].items()}
        for name, array in arrays.items():
            if array.ndim == 1 and array_digest(array) != digests[name]:
                raise ValueError(f"the checksum of {name} differs")
        return Entry(arrays, digests, manifest["facts"])


def read_manifest(entry: Path) -> dict[str, Any]:
    """Return the manifest of an entry, which must have its own checksum."""
    if not entry.is_dir():
        raise StaleError(f"there is no {str(entry)!r}")
    require_private(entry, *entry.parents[:3])
    manifest: dict[str, Any] = json.loads((entry / MANIFEST).read_bytes())
    if manifest["format"] != FORMAT:
        raise StaleError(f"{str(entry)!r} has an old format")
    if manifest.pop("sha256") != _manifest_digest(manifest):
        raise ValueError("the checksum of the manifest differs")
    return manifest


def require_private(*folders: Path) -> None:
    """Raise an error if another user could have written to a folder or can replace it.

    Root is trusted. In a folder with the sticky bit, users replace only what they own.
    """
    if os.name != "posix":
        return
    for folder in folders:
        target = os.stat(folder)
        is_open = target.st_mode & stat.S_IWOTH and not target.st_mode & stat.S_ISVTX
        if is_open or not {target.st_uid, os.lstat(folder).st_uid} <= {0, os.getuid()}:
            raise SteradError(
                f"{str(folder)!r} belongs to another user or every user can write to it, so that "
                "it is not used: remove it, or set XDG_CACHE_HOME to a folder of your own"
            )


def _map_array(entry: Path, name: str, saved: Mapping[str, Any]) -> Array:
    if name != Path(name).name:
        raise ValueError(f"the array {name!r} is outside the entry")
    file = entry / f"{name}.npy"
    if (size := file.stat().st_size) != saved["bytes"]:
        raise ValueError(f"{file.name} has {size} bytes instead of {saved['bytes']}")
    array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    if [list(array.shape), array.dtype.str] != [saved["shape"], saved["dtype"]]:
        raise ValueError(f"{file.name} is {array.dtype} of shape {array.shape}")
    return array


def verify_entry(root: Path, entry: Path) -> None:
    """Read every byte of the sources and arrays of an entry and compare checksums."""
    with reading(entry, REMEDY):
        manifest = read_manifest(entry)
        if _file_stamps(root, manifest["sources"]) != manifest["sources"]:
            raise StaleError(f"the source files of {str(entry)!r} have changed: run this again")
        if _sources_digest(root, manifest["sources"]) != manifest["sources_sha256"]:
            raise ValueError("the content of the source files differs")
        for name, saved in manifest["arrays"].items():
            if array_digest(_map_array(entry, name, saved)) != saved["sha256"]:
                raise ValueError(f"the checksum of {name} differs")


def make_entry(
    root: Path,
    key: str,
    arrays: Mapping[str, Chunks],
    facts: Mapping[str, Any],
    sources: Iterable[Path],
) -> Entry:
    """Write an entry and open it, unless another process has written it in the meantime."""
    folder = cache_folder(root)
    try:
        parents = (folder / key).parents[:3]
        for parent in reversed(parents):
            parent.mkdir(0o700, parents=True, exist_ok=True)
        require_private(*parents)
        with hold_lock(folder / "lock", f"decoding {key}"):
            _remove_temporary(folder)
            with suppress(SteradError):
                return open_entry(root, key)
            names = [str(_source_name(root, source)) for source in sources]
            manifest = {
                "facts": facts,
                "sources": _file_stamps(root, names),
                "sources_sha256": _sources_digest(root, names),
            }
            _write_entry(folder / key, arrays, manifest)
            return open_entry(root, key)
    except OSError as error:
        raise SteradError(
            f"cannot write the decoded images to the cache in {str(folder)!r} "
            f"({error.strerror or error}): free disk space, make the folder writable, or set "
            "XDG_CACHE_HOME to a writable folder"
        ) from error


def _write_entry(entry: Path, arrays: Mapping[str, Chunks], manifest: dict[str, Any]) -> None:
    new, old = (entry.with_name(f".{entry.name}.{kind}.tmp") for kind in ("new", "old"))
    try:
        new.mkdir(0o700)
        saved = {name: _save_array(new / f"{name}.npy", c) for name, c in arrays.items()}
        # Through JSON, which turns tuples to lists, so that the checksum is that of the file.
        manifest = json.loads(json.dumps({"format": FORMAT, **manifest, "arrays": saved}))
        text = json.dumps(manifest | {"sha256": _manifest_digest(manifest)})
        (new / MANIFEST).write_text(text)
        # No fsync: a file truncated by a power failure has the wrong size and is rebuilt.
        if entry.exists():
            os.rename(entry, old)
        os.rename(new, entry)
    finally:
        _remove_temporary(entry.parent)


def _manifest_digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _sources_digest(root: Path, names: Iterable[str]) -> str:
    """Return one hash of the content of all source files; folders have none."""
    digest = hashlib.sha256()
    for path in (root / name for name in names):
        if path.is_file():
            with open(path, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _save_array(file: Path, chunks: Chunks) -> dict[str, Any]:
    digest, first = hashlib.sha256(), None
    with open(file, "wb") as out:
        for chunk in chunks.begin():
            if first is None:
                first = chunk
                shape = (chunks.rows, *first.shape[1:])
                digest.update(array_header(first.dtype, shape))
                header = {"descr": first.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(out, header)
            out.write(array_bytes(chunk))
            digest.update(array_bytes(chunk))
    if first is None:
        raise SteradError(f"the array {file.stem} is empty: give at least one image")
    saved = {"bytes": file.stat().st_size, "shape": list(shape), "dtype": first.dtype.str}
    return saved | {"sha256": digest.hexdigest()}


def _source_name(root: Path, source: Path) -> Path:
    """Return a source relative to `root`, so that both can be moved, or else as absolute path.

    A relative source is relative to the working directory, and so may `root` be.
    """
    return source.relative_to(root) if source.is_relative_to(root) else source.absolute()


def _file_stamps(root: Path, names: Iterable[str]) -> dict[str, list[int]]:
    """Return size, times and inode of each source; of a folder, the modification time only."""
    stamps, home = {}, str(root)
    for name in names:
        with suppress(OSError, ValueError):
            status = os.stat(os.path.join(home, name))  # which is name if name is absolute
            is_folder = stat.S_ISDIR(status.st_mode)
            size, inode = (0, 0) if is_folder else (status.st_size, status.st_ino)
            # The change time cannot be set back, unlike the modification time.
            changed = 0 if is_folder else status.st_ctime_ns
            stamps[name] = [size, status.st_mtime_ns, inode, changed]
    return stamps


def _remove_temporary(folder: Path) -> None:
    """Remove temporary folders of killed processes; the caller holds the lock."""
    for temporary in folder.glob(".*.tmp"):
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def hold_lock(file: Path, activity: str, wait: bool = True) -> Iterator[None]:
    """Hold a lock between processes; the system releases it even after SIGKILL.

    If another process holds it, wait for that process, or raise an error without `wait`. An
    OSError of a folder that is not writable is passed to the caller.
    """
    lock = FileLock(file, fallback_to_soft=False)  # a soft lock would outlive a killed process
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        if not wait:
            raise SteradError(
                f"another process is {activity}: wait until it ends, then run this again"
            ) from error
        print(f"sterad: waiting for another process that is {activity}", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
