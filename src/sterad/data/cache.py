"""Cache of decoded arrays on disk, memory-mapped and shared by all processes.

An entry is a folder of .npy files and a manifest with the sizes and modification times of the
source files and the checksums of the arrays. It is written to a temporary folder and renamed, so
that it is never visible in part. Opening an entry compares sizes only; `sterad data check` reads
every byte.
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

FORMAT = 3
MANIFEST = "manifest.json"


class DamagedError(Exception):
    """An entry differs from its manifest."""


class StaleError(Exception):
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


def cache_folders(root: Path) -> tuple[Path, ...]:
    """Return the folders of the entries of `root`: in `root`, then in the cache of the user.

    The second one is used if `root` is read-only.
    """
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    digest = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
    fallback = Path(user) / "sterad" / digest
    return (root / ".sterad", fallback) if root.is_dir() else (fallback,)


def find_entry(root: Path, key: str) -> Entry | None:
    """Return the entry `key` if it is valid; print a warning if it is damaged."""
    for folder in cache_folders(root):
        try:
            return open_entry(root, folder / key)
        except StaleError:
            continue
        except DamagedError as error:
            print(f"sterad: {folder / key} is damaged ({error}); rebuilding it", file=sys.stderr)
    return None


def open_entry(root: Path, entry: Path) -> Entry:
    """Memory-map the arrays of an entry after comparing sizes, shapes and source files."""
    manifest = read_manifest(entry)
    if _file_stamps(root, map(Path, manifest["sources"])) != manifest["sources"]:
        raise StaleError
    arrays, digests = {}, {}
    for file, saved in manifest["arrays"].items():
        name = file.removesuffix(".npy")
        arrays[name] = _map_array(entry / file, saved)
        digests[name] = str(saved["sha256"])
    return Entry(arrays, digests, manifest["facts"])


def read_manifest(entry: Path) -> dict[str, Any]:
    """Return the manifest of an entry."""
    if not entry.is_dir():
        raise StaleError
    try:
        manifest: dict[str, Any] = json.loads((entry / MANIFEST).read_bytes())
        known = manifest["format"] == FORMAT and {"sources", "arrays", "facts"} <= set(manifest)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"the manifest cannot be read: {error}") from error
    if not known:
        raise StaleError
    return manifest


def _map_array(file: Path, saved: Mapping[str, Any]) -> Array:
    try:
        size = file.stat().st_size
        if size != saved["bytes"]:
            raise DamagedError(f"{file.name} has {size} bytes instead of {saved['bytes']}")
        array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DamagedError(f"{file.name} cannot be read: {error}") from error
    if [list(array.shape), array.dtype.str] != [saved["shape"], saved["dtype"]]:
        raise DamagedError(
            f"{file.name} is {array.dtype} of shape {array.shape} instead of {saved['dtype']} of "
            f"shape {tuple(saved['shape'])}"
        )
    return array


def verify_entry(entry: Path) -> None:
    """Read every byte of an entry and compare checksums; raise DamagedError if one differs."""
    for name, saved in read_manifest(entry)["arrays"].items():
        array = _map_array(entry / name, saved)
        if array_digest(array) != saved["sha256"]:
            raise DamagedError(f"the checksum of {name} differs")


def make_entry(
    root: Path,
    key: str,
    arrays: Mapping[str, Chunks],
    facts: Mapping[str, Any],
    sources: Iterable[Path],
) -> Entry:
    """Write an entry and open it, unless another process has written it in the meantime."""
    failures = []
    for folder in cache_folders(root):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with hold_lock(folder / "lock", f"decoding {key}"):
                _remove_temporary(folder)
                with suppress(StaleError, DamagedError):
                    return open_entry(root, folder / key)
                stamps = _file_stamps(root, [_source_name(root, source) for source in sources])
                _write_entry(folder / key, arrays, {"facts": facts, "sources": stamps})
                return open_entry(root, folder / key)
        except OSError as error:
            failures.append(f"{folder}: {error.strerror or error}")
    raise SteradError(
        f"cannot write the decoded images to the cache ({'; '.join(failures)}): free disk space, "
        "make one of these folders writable, or set XDG_CACHE_HOME to a writable folder"
    )


def _write_entry(entry: Path, arrays: Mapping[str, Chunks], manifest: Mapping[str, Any]) -> None:
    new, old = (entry.with_name(f".{entry.name}.{kind}.tmp") for kind in ("new", "old"))
    try:
        new.mkdir()
        saved = {f"{name}.npy": _save_array(new / f"{name}.npy", c) for name, c in arrays.items()}
        text = json.dumps({"format": FORMAT, **manifest, "arrays": saved}, indent=1)
        (new / MANIFEST).write_text(text)
        # No fsync: a file truncated by a power failure has the wrong size and is rebuilt.
        if entry.exists():
            os.rename(entry, old)
        os.rename(new, entry)
    finally:
        _remove_temporary(entry.parent)


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


def _file_stamps(root: Path, names: Iterable[Path]) -> dict[str, list[int]]:
    """Return size, times and inode of each source; of a folder, the modification time only."""
    stamps = {}
    for name in names:
        with suppress(OSError):
            status = os.stat(root / name)  # root / name is name if name is absolute
            is_folder = stat.S_ISDIR(status.st_mode)
            size, inode = (0, 0) if is_folder else (status.st_size, status.st_ino)
            # The change time cannot be set back, unlike the modification time.
            changed = 0 if is_folder else status.st_ctime_ns
            stamps[str(name)] = [size, status.st_mtime_ns, inode, changed]
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
