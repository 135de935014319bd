"""One directory per run: config.json, events.jsonl, checkpoint.pt and, last, record.json."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sterad.atomic import remove_leftovers, write_atomically
from sterad.errors import SteradError
from sterad.results.reading import read_record
from sterad.results.record import RunRecord


class RunDirectory:
    """The files of one run; the presence of `record.json` is its completion."""

    def __init__(self, out: Path, run_id: str) -> None:
        """Name the files; nothing is touched before it is locked."""
        self.path = out / run_id
        self.config = self.path / "config.json"
        self.events = self.path / "events.jsonl"
        self.checkpoint = self.path / "checkpoint.pt"
        self.record = self.path / "record.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for this process; the system releases it even after SIGKILL."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Not thread-local: another thread may release it.
            lock = FileLock(self.path / "lock", thread_local=False, on_acquired=_write_pid)
            lock.acquire(timeout=0)
        except Timeout as error:
            raise SteradError(
                f"the run {str(self.path)!r} is being written by process {self._lock_holder()}: "
                "wait for it to finish, or choose another place with --out"
            ) from error
        except OSError as error:
            raise self._refusal(error) from error
        try:
            remove_leftovers(self.path)
            yield
        finally:
            lock.release()

    def _lock_holder(self) -> str:
        try:
            return (self.path / "lock").read_text() or "unknown"
        except OSError:  # Windows lets no other process read a locked file
            return "unknown"

    def _refusal(self, error: OSError) -> SteradError:
        return SteradError(
            f"cannot write to {str(self.path)!r}: {error.strerror}. "
            "Make room there, or choose a place that you may write to with --out"
        )

    def read_record(self) -> RunRecord | None:
        """Return the record of a finished run."""
        if not self.record.exists():
            return None
        return read_record(self.record, str(self.record))

    def write_record(self, record: RunRecord) -> None:
        """Complete the run."""
        write_atomically(self.record, record.to_json())

    def read_config(self) -> dict[str, Any] | None:
        """Return what `write_config` kept."""
        if not self.config.exists():
            return None
        try:
            kept: dict[str, Any] = json.loads(self.config.read_text())
            return {"config": kept["config"], "execution": kept["execution"]}
        except (ValueError, TypeError, KeyError) as error:
            raise SteradError(
                f"{str(self.config)!r} is damaged ({error!r}): delete the directory to start anew"
            ) from error

    def write_config(self, config: Mapping[str, Any], execution: Mapping[str, Any]) -> None:
        """Keep what the run is and how it is executed."""
        text = json.dumps({"config": config, "execution": execution}, indent=1) + "\n"
        write_atomically(self.config, text)

    def trim_events(self, step: int) -> None:
        """Forget events later than the checkpoint that the run continues from."""
        if self.events.exists():
            kept = [line for line in self.events.read_text().splitlines() if _until(line, step)]
            write_atomically(self.events, "".join(line + "\n" for line in kept))


def _write_pid(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())


def _until(line: str, step: int) -> bool:
    try:
        return int(json.loads(line)["step"]) <= step
    except (ValueError, KeyError, TypeError):
        return False  # cut short by a kill
