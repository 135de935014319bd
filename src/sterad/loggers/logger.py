"""The protocol of loggers, and those that can be asked for by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from sterad.registry import Registry


class Logger(Protocol):
    """Anything that takes events; used as a context so that it can clean up."""

    def __enter__(self) -> Self:
        """Open."""

    def emit(self, event: Mapping[str, Any]) -> None:
        """Take one event."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""


LOGGERS: Registry[Callable[[str, Path, Mapping[str, Any]], Logger]] = Registry(
    "logger", "sterad.loggers"
)
"""By name, what makes a logger from the id of a run, its directory and its config as plain values;
nothing is opened or written before the logger is entered."""
