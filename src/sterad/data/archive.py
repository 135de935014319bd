"""Unpack archives and read .npz files safely: sizes are limited before memory is allocated.

Archives may contain regular files only, inside the target folder.
"""

import math
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from sterad.data.arrays import Array
from sterad.errors import SteradError
from sterad.files import reading

READ_SIZE = 1 << 20
"""Bytes copied at once, at most."""
# Limits of an archive, larger than any official dataset needs.
MAX_MEMBERS = 400_000
MAX_BYTES = 32 << 30
MAX_RATIO = 200
"""Unpacked bytes per packed byte; does not apply below MIN_SIZE_LIMIT."""
MIN_SIZE_LIMIT = 1 << 24
"""Unpacked bytes that are allowed for any archive, whatever its compression ratio."""


def max_unpacked_bytes(file: Path) -> int:
    """Return the number of bytes that a compressed file may unpack to."""
    return min(MAX_BYTES, max(MIN_SIZE_LIMIT, MAX_RATIO * file.stat().st_size))


def read_npz(path: Path, names: Collection[str], remedy: str) -> dict[str, Array]:
    """Return those of the named arrays that a .npz file contains."""
    with reading(path, remedy):
        limit = max_unpacked_bytes(path)
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            chosen = {name: members[name] for name in names if name in members}
            if (size := sum(info.file_size for info in chosen.values())) > limit:
                raise ValueError(f"{size:,} unpacked bytes are more than the limit, {limit:,}")
            return {name: _read_array(archive, info) for name, info in chosen.items()}


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Read one array after its declared shape was compared with the size of the member."""
    npy = np.lib.format
    with archive.open(info) as file:
        is_old = npy.read_magic(file) == (1, 0)
        shape, _, dtype = (npy.read_array_header_1_0 if is_old else npy.read_array_header_2_0)(file)
        if math.prod(shape) * max(1, dtype.itemsize) > info.file_size:
            raise ValueError(f"{info.filename} has {info.file_size} bytes for the shape {shape}")
    with archive.open(info) as file:
        array: Array = npy.read_array(file, allow_pickle=False)
        if file.read(1):
            raise ValueError(f"{info.filename} has more bytes than its shape {shape}")
    return array


def unpack(archive: Path, into: Path, folder: str) -> None:
    """Unpack `folder` of an archive into `into`; it is renamed when it is complete."""
    temporary = into / f".{folder}.{os.getpid()}.tmp"
    try:
        temporary.mkdir()
        _write_members(archive, temporary)
        if not (temporary / folder).is_dir():
            raise _wrong_archive(archive, f"has no folder {folder!r}")
        os.rename(temporary / folder, into / folder)
    except SteradError:
        raise
    except OSError as error:
        raise SteradError(
            f"cannot unpack {str(archive)!r} in {str(into)!r}: {error.strerror or error}. Free "
            "disk space, or choose another --root"
        ) from error
    except Exception as error:  # a damaged archive can raise any exception
        raise _wrong_archive(archive, f"is damaged or truncated ({error})") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_members(archive: Path, folder: Path) -> None:
    max_bytes = max_unpacked_bytes(archive)
    members = _zip_members(archive) if zipfile.is_zipfile(archive) else _tar_members(archive)
    written = 0
    for count, (name, content) in enumerate(members, start=1):
        if count > MAX_MEMBERS:
            raise _wrong_archive(archive, f"contains more than {MAX_MEMBERS:,} files")
        path = folder / _safe_name(archive, name)
        if content is None:
            continue
        if path.exists():
            raise _wrong_archive(archive, f"contains the file {name!r} twice")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as out:
            while chunk := content.read(READ_SIZE):
                written += len(chunk)
                if written > max_bytes:
                    problem = f"contains more than {max_bytes:,} unpacked bytes"
                    raise _wrong_archive(archive, problem)
                out.write(chunk)


def _safe_name(archive: Path, name: str) -> PurePosixPath:
    """Return the name of a member; raise an error if it leads outside the target folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise _wrong_archive(archive, f"contains the path {name!r}, which leads outside the folder")
    return path


def _wrong_archive(archive: Path, problem: str) -> SteradError:
    return SteradError(
        f"{str(archive)!r} {problem}: it is not the official archive; remove it and run this again"
    )


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the name and the open content of each file; the content of a folder is None."""
    with tarfile.open(archive, "r|*") as tar:
        for info in tar:
            if not (info.isreg() or info.isdir()):
                raise _wrong_archive(archive, f"contains {info.name!r}, a link or a device")
            yield info.name, tar.extractfile(info)


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the name and the open content of each file; the content of a folder is None."""
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _wrong_archive(archive, f"contains {info.filename!r}, a link or a device")
            if info.is_dir():
                yield info.filename, None
                continue
            with packed.open(info) as content:
                yield info.filename, content
