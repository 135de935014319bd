"""A disk that fails: the calls that write files fail at a chosen position, or the machine stops.

All calls below a folder are counted, whichever module makes them: open for writing, write, fsync,
rename and creation of a folder. What a power cut leaves is modeled strictly: bytes are durable
after an fsync of their file, names after an fsync of their folder.
"""

import builtins
import contextlib
import errno
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FAULTS = ("full", "EIO", "short", "torn", "crash", "power cut", "power cut, names kept")
"""A full disk from then on; one I/O error; a write of a part, without and with an error; a crash of
the process; a power cut that loses all that was not synced; one that keeps the names of files."""
ROOM_NEEDED = ("open", "write", "mkdir")
"""Operations that fail if the disk is full."""


class Crash(BaseException):
    """The process ends here. What runs after it is not seen on the disk."""


class Disk:
    """Counts operations in a folder, and fails at one of them."""

    def __init__(self, folder: Path, fault: str = "", position: int = -1) -> None:
        self.folder, self.fault, self.position = folder, fault, position
        self.operations: list[str] = []
        self.crashed: dict[Path, bytes | None] | None = None
        """The files after the crash; None for a folder."""
        self.names: dict[Path, int] = {}
        """Number of the file with this name."""
        self.durable_names: dict[Path, int] = {}
        self.durable_bytes: dict[int, bytes | None] = {}
        self.descriptors: dict[int, int] = {}
        """Numbers of open files by descriptor."""
        for path in folder.rglob("*"):
            self.add(path, path.read_bytes() if path.is_file() else None)
        self.durable_names = dict(self.names)

    def add(self, path: Path, content: bytes | None) -> int:
        """Give a number to a new file or folder."""
        number = self.names[path] = len(self.durable_bytes)
        self.durable_bytes[number] = content
        return number

    def contains(self, path: Any) -> bool:
        """Return whether a path is in the folder; locks are left to the system."""
        if not isinstance(path, str | os.PathLike):
            return False
        full = Path(os.fspath(path)).absolute()
        return self.folder in full.parents and full.name != "lock" and self.crashed is None

    def count(self, operation: str) -> str:
        """Count an operation; fail, or return the fault that the caller must carry out."""
        number = len(self.operations)
        self.operations.append(operation)
        if self.fault == "full" and number >= self.position and operation in ROOM_NEEDED:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if number != self.position:
            return ""
        if self.fault == "EIO":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.fault in ("short", "torn") and operation == "write":
            return self.fault
        if self.fault in ("crash", "power cut", "power cut, names kept"):
            self.crash()
        return ""

    def crash(self) -> None:
        """Remember what a crash leaves, and end the process."""
        if self.fault == "crash":
            self.crashed = {
                path: path.read_bytes() if path.is_file() else None
                for path in self.folder.rglob("*")
            }
        else:
            self.crashed = self.after_power_cut()
        raise Crash

    def after_power_cut(self) -> dict[Path, bytes | None]:
        """Return the durable content of each durable name, if its folder is durable."""
        names = self.names if "names kept" in self.fault else self.durable_names
        kept: dict[Path, bytes | None] = {}
        for path in sorted(names, key=lambda path: len(path.parts)):
            if path.parent == self.folder or path.parent in kept:
                kept[path] = self.durable_bytes[names[path]]
        return kept

    def restore(self) -> None:
        """Put the files that the crash left into the folder."""
        assert self.crashed is not None
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for path, content in self.crashed.items():
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Replace the calls that write files."""
        with pytest.MonkeyPatch.context() as patch:
            for module in (builtins, io):
                patch.setattr(module, "open", self.wrap_open(io.open))
            for name in ("replace", "rename"):
                patch.setattr(os, name, self.wrap_replace(getattr(os, name)))
            for name in ("unlink", "remove"):
                patch.setattr(os, name, self.wrap_unlink(getattr(os, name)))
            patch.setattr(os, "fsync", self.wrap_fsync(os.fsync))
            patch.setattr(os, "mkdir", self.wrap_mkdir(os.mkdir))
            yield

    def wrap_open(self, original: Any) -> Any:
        """Return `open` with files that count and fail."""

        def open_file(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if not self.contains(file) or "r" in mode:
                return original(file, mode, *args, **kwargs)
            path = Path(file).absolute()
            self.count("open")
            raw = FaultyFile(self, path, mode.replace("b", "").replace("t", ""))
            number = self.names[path] if path in self.names else self.add(path, b"")
            self.descriptors[raw.fileno()] = number
            buffered = io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, "utf-8")

        return open_file

    def wrap_replace(self, original: Any) -> Any:
        """Return `os.replace` that counts and fails."""

        def replace(source: Any, target: Any, **kwargs: Any) -> None:
            if self.contains(target):
                self.count("replace")
                self.names[Path(target).absolute()] = self.names.pop(Path(source).absolute())
            original(source, target, **kwargs)

        return replace

    def wrap_unlink(self, original: Any) -> Any:
        """Return `os.unlink` that is tracked; deleting needs no room and does not fail."""

        def unlink(path: Any, **kwargs: Any) -> None:
            original(path, **kwargs)
            if self.contains(path):
                self.names.pop(Path(path).absolute(), None)

        return unlink

    def wrap_fsync(self, original: Any) -> Any:
        """Return `os.fsync` that counts, fails, and makes bytes or names durable."""

        def fsync(descriptor: int) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if self.crashed is None and (path == self.folder or self.folder in path.parents):
                self.count("fsync folder" if path.is_dir() else "fsync")
                self.sync(path, descriptor)
            original(descriptor)

        return fsync

    def sync(self, path: Path, descriptor: int) -> None:
        """Make the names in a folder durable, or the bytes of a file."""
        if path.is_dir():
            others = {k: v for k, v in self.durable_names.items() if k.parent != path}
            self.durable_names = others | {k: v for k, v in self.names.items() if k.parent == path}
        else:
            self.durable_bytes[self.descriptors[descriptor]] = path.read_bytes()

    def wrap_mkdir(self, original: Any) -> Any:
        """Return `os.mkdir` that counts and fails."""

        def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
            if not self.contains(path):
                original(path, *args, **kwargs)
                return
            self.count("mkdir")
            original(path, *args, **kwargs)
            self.add(Path(path).absolute(), None)

        return mkdir


class FaultyFile(io.FileIO):
    """A file whose writes are counted and may fail; `io.BufferedWriter` buffers it as usual."""

    def __init__(self, disk: Disk, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self.disk = disk

    def write(self, data: Any, /) -> int:
        """Write all or a part of the data."""
        if self.disk.crashed is not None:
            return len(data)  # the process has ended: nothing is written any more
        fault = self.disk.count("write")
        if not fault:
            return super().write(data) or 0
        written = super().write(bytes(data)[: len(data) // 2]) or 0
        if fault == "torn":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return max(written, 1) if len(data) > 1 else super().write(data) or 0
