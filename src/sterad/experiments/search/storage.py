"""Storage: where a search is kept: a file, or a database that many machines share."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages.journal import JournalStorage
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, ProgrammingError, SQLAlchemyError

from sterad.errors import SteradError
from sterad.experiments.search.journal import PATIENCE, JournalFile

CONNECTING: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": PATIENCE},
    "postgresql": {
        "connect_timeout": round(PATIENCE),
        "options": f"-c lock_timeout={PATIENCE:.0f}s",
    },
    "mysql": {"connect_timeout": round(PATIENCE)},
}


@contextlib.contextmanager
def plainly(storage: str) -> Iterator[None]:
    """Say in a sentence what a storage refuses."""
    try:
        yield
    except (SQLAlchemyError, StorageInternalError, ImportError) as error:
        cause = error.__cause__ if isinstance(error, StorageInternalError) else error
        reason = str(getattr(cause, "orig", None) or cause).strip().partition("\n")[0]
        raise SteradError(
            f"the storage {without_password(storage)!r} does not answer or is locked ({reason}): "
            "finished runs are kept, and the same command continues once it answers"
        ) from error


def open_storage(storage: str) -> BaseStorage:
    """Return the storage of a URL, or of a file, which is made where there is none."""
    if "://" not in storage:
        return JournalStorage(JournalFile(Path(storage)))
    try:
        backend = make_url(storage).get_backend_name()
    except ArgumentError as error:
        raise SteradError(
            f"the storage {storage!r} is no database URL: give postgresql+psycopg://USER@HOST/NAME "
            "or the path of a file"
        ) from error
    return _database(storage, {"connect_args": CONNECTING.get(backend, {}), "pool_pre_ping": True})


def _database(url: str, settings: dict[str, Any], attempts: int = 3) -> RDBStorage:
    try:
        return RDBStorage(url, settings)
    except (IntegrityError, ProgrammingError):
        # Two processes that begin at once both make the tables, and one of them is refused.
        if attempts == 1:
            raise
        time.sleep(1)
        return _database(url, settings, attempts - 1)


def without_password(storage: str) -> str:
    """Return a URL that may be printed.

    >>> without_password("postgresql://me:secret@host/name")
    'postgresql://me:***@host/name'
    """
    try:
        return make_url(storage).render_as_string(hide_password=True)
    except ArgumentError:
        return storage
