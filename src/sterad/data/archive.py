"""Unpack archives safely: regular files only, inside the target folder, limited in size."""

import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from sterad.errors import SteradError

READ_SIZE = 1 << 20
"""Bytes copied at once, at most."""
MIN_SIZE_LIMIT = 1 << 24
"""Unpacked bytes that are allowed for any archive, whatever its compression ratio."""


@dataclass(frozen=True)
class Limits:
    """Upper limits for an archive, larger than any official dataset needs."""

    files: int = 400_000
    bytes: int = 32 << 30
    ratio: int = 200
    """Unpacked bytes per packed byte; does not apply below MIN_SIZE_LIMIT."""


@dataclass(frozen=True)
class Member:
    """One file of an archive."""

    name: str
    content: IO[bytes]


def unpack(archive: Path, into: Path, folder: str, limits: Limits | None = None) -> Path:
    """Unpack `folder` of an archive into `into`; it is renamed when it is complete."""
    target, temporary = into / folder, into / f".{folder}.{os.getpid()}.tmp"
    try:
        temporary.mkdir()
        _write_members(archive, temporary, limits or Limits())
        if not (temporary / folder).is_dir():
            raise SteradError(
                f"{str(archive)!r} has no folder {folder!r}: it is not the official archive; "
                "remove it and run this again"
            )
        os.rename(temporary / folder, target)
    except OSError as error:
        raise SteradError(
            f"cannot unpack {str(archive)!r} in {str(into)!r}: {error.strerror or error}. Free "
            "disk space, or choose another --root"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _write_members(archive: Path, folder: Path, limits: Limits) -> None:
    packed = archive.stat().st_size
    max_bytes = min(limits.bytes, max(MIN_SIZE_LIMIT, packed * limits.ratio))
    written = 0
    try:
        for count, member in enumerate(_members(archive), start=1):
            if count > limits.files:
                raise _unsafe_archive(archive, f"more than {limits.files:,} files")
            path = folder / safe_name(archive, member.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb") as out:
                while chunk := member.content.read(READ_SIZE):
                    written += len(chunk)
                    if written > max_bytes:
                        raise _unsafe_archive(archive, f"more than {max_bytes:,} unpacked bytes")
                    out.write(chunk)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise SteradError(
            f"{str(archive)!r} is damaged or truncated ({error}): remove it and run this again"
        ) from error
    except FileExistsError as error:
        raise _unsafe_archive(archive, f"the file {error.filename!r} twice") from error


def safe_name(archive: Path, name: str) -> PurePosixPath:
    """Return the name of a member; raise an error if it leads outside the target folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise _unsafe_archive(archive, f"the path {name!r}, which leads outside the folder")
    return path


def _unsafe_archive(archive: Path, what: str) -> SteradError:
    return SteradError(
        f"{str(archive)!r} contains {what}: it is not the official archive; remove it and run this "
        "again"
    )


def _members(archive: Path) -> Iterator[Member]:
    if zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
    else:
        yield from _tar_members(archive)


def _tar_members(archive: Path) -> Iterator[Member]:
    with _read_errors(archive), tarfile.open(archive, "r|*") as tar:
        for info in tar:
            if info.isdir():
                safe_name(archive, info.name)
                continue
            content = tar.extractfile(info) if info.isreg() else None
            if content is None:
                raise _unsafe_archive(archive, f"{info.name!r}, a link or a device")
            yield Member(info.name, content)


def _zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _unsafe_archive(archive, f"{info.filename!r}, a link or a device")
            if info.is_dir():
                safe_name(archive, info.filename)
                continue
            with packed.open(info) as content:
                yield Member(info.filename, content)


@contextmanager
def _read_errors(archive: Path) -> Iterator[None]:
    """Convert an OSError of gzip, which has no errno, to EOFError; others are disk errors."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise EOFError(str(error)) from error
        raise
