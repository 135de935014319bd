"""Archives unpacked with suspicion: whole, inside their folder, plain files only, and bounded."""

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

PIECE = 1 << 20
SMALL = 1 << 24
"""Bytes that any archive may unpack to, however small it is packed."""


@dataclass(frozen=True)
class Limits:
    """What an honest archive of a dataset stays below."""

    files: int = 400_000
    bytes: int = 32 << 30
    ratio: int = 200
    """Unpacked bytes for each packed one, beyond what any small archive may unpack to."""


@dataclass(frozen=True)
class Member:
    """One file of an archive that is about to be written."""

    name: str
    content: IO[bytes]


def unpack(archive: Path, into: Path, wanted: str, limits: Limits | None = None) -> Path:
    """Unpack the folder `wanted` of an archive to `into`; it appears there whole or not at all."""
    target, fresh = into / wanted, into / f".{wanted}.{os.getpid()}.tmp"
    try:
        fresh.mkdir()
        _write_all(archive, fresh, limits or Limits())
        if not (fresh / wanted).is_dir():
            raise SteradError(
                f"{str(archive)!r} holds no folder {wanted!r}: it is not the official archive; "
                "remove it and run this again"
            )
        os.rename(fresh / wanted, target)
    except OSError as error:
        raise SteradError(
            f"cannot unpack {str(archive)!r} in {str(into)!r}: {error.strerror or error}. Make "
            "room there, or choose another --root"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _write_all(archive: Path, folder: Path, limits: Limits) -> None:
    packed = archive.stat().st_size
    most = min(limits.bytes, max(SMALL, packed * limits.ratio))
    written = 0
    try:
        for count, member in enumerate(_members(archive), start=1):
            if count > limits.files:
                raise _refusal(archive, f"more than {limits.files:,} files")
            path = folder / safe_name(archive, member.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "xb") as out:
                while piece := member.content.read(PIECE):
                    written += len(piece)
                    if written > most:
                        raise _refusal(archive, f"more than {most:,} bytes, like a bomb,")
                    out.write(piece)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise SteradError(
            f"{str(archive)!r} is damaged or cut short ({error}): remove it and run this again"
        ) from error
    except FileExistsError as error:
        raise _refusal(archive, f"{error.filename!r} twice") from error


def safe_name(archive: Path, name: str) -> PurePosixPath:
    """Return the name of a member, which must stay below the folder that it is unpacked to."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise _refusal(archive, f"the path {name!r}, which leads elsewhere,")
    return path


def _refusal(archive: Path, what: str) -> SteradError:
    return SteradError(
        f"{str(archive)!r} holds {what} and is refused: it is not the official archive; remove it"
    )


def _members(archive: Path) -> Iterator[Member]:
    if zipfile.is_zipfile(archive):
        yield from _of_zip(archive)
    else:
        yield from _of_tar(archive)


def _of_tar(archive: Path) -> Iterator[Member]:
    with _read_errors(archive), tarfile.open(archive, "r|*") as tar:
        for info in tar:
            if info.isdir():
                safe_name(archive, info.name)
                continue
            content = tar.extractfile(info) if info.isreg() else None
            if content is None:
                raise _refusal(archive, f"{info.name!r}, a link or a device,")
            yield Member(info.name, content)


def _of_zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refusal(archive, f"{info.filename!r}, a link or a device,")
            if info.is_dir():
                safe_name(archive, info.filename)
                continue
            with packed.open(info) as content:
                yield Member(info.filename, content)


@contextmanager
def _read_errors(archive: Path) -> Iterator[None]:
    """Tell gzip's own OSErrors, which speak of the archive, from those of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise EOFError(str(error)) from error
        raise
