"""Storage of a search: a journal file, or a database that several machines share."""

import contextlib
import math
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
from optuna import Study
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, ProgrammingError, SQLAlchemyError

from sterad.errors import SteradError
from sterad.experiments.search.space import Space

STORAGE_TIMEOUT_S = 8.0
"""Seconds to wait for a lock or a connection."""
OWNER_TIMEOUT_S = 3600.0
"""A trial on another machine that has not been updated for so long is taken to be abandoned."""
CONNECT_ARGS: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": STORAGE_TIMEOUT_S},
    "postgresql": {
        "connect_timeout": round(STORAGE_TIMEOUT_S),
        "options": f"-c lock_timeout={STORAGE_TIMEOUT_S:.0f}s",
    },
    "mysql": {"connect_timeout": round(STORAGE_TIMEOUT_S)},
}


def open_storage(storage: str) -> BaseStorage:
    """Return the storage at a database URL or in a file, which is created if it does not exist."""
    if "://" not in storage:
        return _open_journal(Path(storage))
    try:
        backend = make_url(storage).get_backend_name()
    except ArgumentError as error:
        raise SteradError(
            f"the storage {storage!r} is not a database URL: give "
            "postgresql+psycopg://USER@HOST/NAME or the path of a file"
        ) from error
    options = {"connect_args": CONNECT_ARGS.get(backend, {}), "pool_pre_ping": True}
    return _open_database(storage, options)


def _open_journal(file: Path) -> JournalStorage:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Opening a journal removes an incomplete last line, so another file is refused before.
    if file.exists() and file.read_bytes()[:1] not in (b"", b"{"):
        raise ValueError("its first line is not an operation")
    lock = JournalLock(file)
    return JournalStorage(JournalFileBackend(str(file), lock))  # type: ignore[arg-type]


def _open_database(url: str, options: dict[str, Any], attempts: int = 3) -> RDBStorage:
    try:
        return RDBStorage(url, options)
    except (IntegrityError, ProgrammingError):
        # Of two processes that create the tables at the same time, one gets this error.
        if attempts == 1:
            raise
        time.sleep(1)
        return _open_database(url, options, attempts - 1)


@contextlib.contextmanager
def storage_errors(storage: str) -> Iterator[None]:
    """Turn the errors of a database or a file into a `SteradError`."""
    try:
        yield
    except (SQLAlchemyError, StorageInternalError, ImportError, OSError) as error:
        cause = error.__cause__ if isinstance(error, StorageInternalError) else error
        reason = getattr(cause, "orig", None) or getattr(cause, "strerror", None) or cause
        first_line = str(reason).strip().partition("\n")[0]
        raise SteradError(
            f"the storage {hide_password(storage)!r} is not available or locked ({first_line}): "
            "finished runs are kept; run the same command again once it is available, or choose "
            "another with --storage"
        ) from error
    except SteradError:
        raise
    except Exception as error:  # Optuna replays a journal without any checks
        raise SteradError(
            f"the storage {hide_password(storage)!r} is not the journal of a search, or is damaged "
            f"({type(error).__name__}: {str(error)[:200]}): choose another with --storage; "
            "finished runs are read, not repeated"
        ) from error


def check_trials(study: Study, space: Space) -> None:
    """Raise an error if the trials lack what a search reads from them."""
    if study.direction is not StudyDirection.MAXIMIZE:
        raise ValueError("it does not maximize the accuracy")
    for trial in study.get_trials(deepcopy=False):
        is_complete = trial.state is TrialState.COMPLETE
        if trial.params or is_complete:
            space.build_method(trial.params)
        if is_complete:
            numbers = (trial.value, *trial.user_attrs["finals"])
            if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
                raise ValueError(f"the accuracies of trial {trial.number} are not numbers")


def hide_password(storage: str) -> str:
    """Return the URL or path of a storage without its password.

    >>> hide_password("postgresql://me:secret@host/name")
    'postgresql://me:***@host/name'
    """
    try:
        return make_url(storage).render_as_string(hide_password=True)
    except ArgumentError:
        return storage


class JournalLock:
    """A lock for Optuna's journal that is released if its process is killed, and that times out."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def acquire(self) -> bool:
        """Wait for the lock, then remove a last line that a kill or a full disk left incomplete."""
        # A new lock each time: filelock prints an error for one that lives until the process exits.
        lock = filelock.FileLock(f"{self.file}.lock", timeout=STORAGE_TIMEOUT_S)
        lock.acquire(poll_interval=0.01)
        self.lock = lock
        try:
            self._remove_incomplete_line()
        except OSError:
            self.release()
            raise
        return True

    def _remove_incomplete_line(self) -> None:
        with open(self.file, "rb+") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 1))
            if size and file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)

    def release(self) -> None:
        """Release the lock."""
        self.lock.release()
        del self.lock


def set_owner(trial: Trial) -> None:
    """Record in the storage that this process runs a trial, and when."""
    owner = {"host": socket.gethostname(), "process": os.getpid(), "seen": time.time()}
    trial.set_user_attr("owner", owner)


def requeue_abandoned_trials(study: Study) -> None:
    """Queue the points of abandoned trials again; their runs continue from their checkpoints."""
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        if _is_abandoned(trial):
            with contextlib.suppress(ValueError):  # another process has requeued it
                study.tell(trial.number, state=TrialState.FAIL)
                if trial.params:
                    study.enqueue_trial(trial.params)


def _is_abandoned(trial: FrozenTrial) -> bool:
    owner: dict[str, Any] = trial.user_attrs.get("owner", {})
    if owner.get("host") == socket.gethostname():
        # This process has not started any trial yet, so an equal id is a reused one.
        return owner["process"] == os.getpid() or not _process_exists(owner["process"])
    start = trial.datetime_start
    updated: float = owner.get("seen", start.timestamp() if start else 0.0)
    return time.time() - updated > OWNER_TIMEOUT_S


def _process_exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        pass
    return True
