"""The protocol of sinks, and those that can be asked for by name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from sterad.registry import Registry


class Sink(Protocol):
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


SINKS: Registry[Callable[[str, Path, Mapping[str, Any]], Sink]] = Registry("sink", "sterad.sinks")
"""By name, what makes a sink from the id of a run, its directory and its config as plain values;
nothing is opened or written before the sink is entered."""
