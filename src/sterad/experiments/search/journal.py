"""JournalFile: a search as a file with a line for each thing told, written by one at a time."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import filelock
from optuna.storages.journal import JournalFileBackend

from sterad.errors import SteradError

PATIENCE = 8.0
"""Seconds to wait for a storage that is locked or does not answer."""


class FileLock:
    """A lock that the system releases even after SIGKILL, and that nobody waits for endlessly."""

    def __init__(self, file: Path) -> None:
        """Name the file that is protected."""
        self.file = file
        self.lock = filelock.FileLock(
            file.with_name(file.name + ".lock"), poll_interval=0.01, fallback_to_soft=False
        )

    def acquire(self) -> bool:
        """Wait for the lock; then cut off a line that a full disk or a kill left unfinished."""
        try:
            self.lock.acquire(timeout=PATIENCE)
        except filelock.Timeout as error:
            raise SteradError(
                f"the storage {str(self.file)!r} has been locked by another process for "
                f"{PATIENCE:.0f} s: end that process; finished runs are kept, and the same "
                "command then continues"
            ) from error
        self._mend()
        return True

    def _mend(self) -> None:
        with open(self.file, "rb+") as file:
            content_ends = file.seek(0, 2)
            file.seek(max(0, content_ends - 1))
            if content_ends and file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)

    def release(self) -> None:
        """Let others write."""
        self.lock.release()


class JournalFile(JournalFileBackend):
    """Optuna's journal with our lock, whose troubles are told in sentences."""

    def __init__(self, file: Path) -> None:
        """Make the file where there is none."""
        self.file = file
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            super().__init__(str(file), FileLock(file))  # type: ignore[arg-type]
        except OSError as error:
            raise self._refusal(error) from error

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Yield what was told."""
        try:
            yield from super().read_logs(log_number_from)
        except OSError as error:
            raise self._refusal(error) from error
        except ValueError as error:
            raise SteradError(
                f"the storage {str(self.file)!r} is no journal of a search, or is damaged: choose "
                "another with --storage; finished runs are read, not repeated"
            ) from error

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write what is told."""
        try:
            super().append_logs(logs)
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> SteradError:
        return SteradError(
            f"cannot write the storage {str(self.file)!r}: {error.strerror}. Make room, or choose "
            "another with --storage; finished runs are kept, and the same command continues"
        )
