"""The protocol of sinks."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self


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
