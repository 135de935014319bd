"""The protocol and the registry of loggers, the scalars of an event, and the file of events."""

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from sterad.errors import SteradError
from sterad.registry import Registry


class Logger(Protocol):
    """A context manager that receives events; a subclass that opens nothing needs only `emit`."""

    def __enter__(self) -> Self:
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Receive one event."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        return None


LOGGERS: Registry[Callable[[str, Path, Mapping[str, Any]], Logger]] = Registry(
    "logger", "sterad.loggers"
)
"""Factories of loggers, called with the id of a run, its directory and its config as a dict.

A factory opens and writes nothing; `__enter__` does.
"""

_SCALARS = {
    "progress": ("loss",),
    "evaluation": ("accuracy", "seen"),
    "end": ("final_average_accuracy", "anytime_accuracy"),
}
"""Fields of each kind of event that are plotted as curves."""


def event_scalars(event: Mapping[str, Any]) -> dict[str, float]:
    """Return the scalars of an event by name, with one accuracy per task that has been seen.

    >>> event_scalars({"event": "evaluation", "accuracy": 0.5, "seen": 4, "cells": (0.5, None)})
    {'accuracy': 0.5, 'seen': 4, 'accuracy/1': 0.5}
    >>> event_scalars({"event": "checkpoint", "step": 7})
    {}
    """
    scalars = {name: event[name] for name in _SCALARS.get(event["event"], ())}
    scalars |= {f"accuracy/{task}": cell for task, cell in enumerate(event.get("cells", ()), 1)}
    return {name: value for name, value in scalars.items() if value is not None}


class JsonLines(Logger):
    """Appends each event as a line of JSON and flushes it: a kill loses at most one line.

    A power cut may lose more of them, but none of a finished run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        try:
            self.file = open(self.path, "a")
        except OSError as error:
            raise self._write_error(error) from error
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Append one line."""
        try:
            self.file.write(json.dumps(event) + "\n")
            self.file.flush()
        except OSError as error:
            raise self._write_error(error) from error

    def _write_error(self, error: OSError) -> SteradError:
        return SteradError(
            f"cannot write {str(self.path)!r}: {error.strerror}. Free some space or choose another "
            "folder with --out; the run continues from its last checkpoint"
        )

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError), self.file:  # `emit` has already reported a full disk
            os.fsync(self.file.fileno())  # the record is written next
