"""Worker: a process that runs the job on its standard input and tells events as lines of JSON."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Self, TextIO

from sterad.experiments.launchers.job import attempted


class Told:
    """A sink that writes each event as a line."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self.stream = stream

    def __enter__(self) -> Self:
        """Nothing to open."""
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Write a line."""
        print(json.dumps(event), file=self.stream, flush=True)

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


def main() -> int:
    """Run one job; the record stays in its directory, an error is the last line."""
    # Whatever a method or a library prints must not stand between the events.
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    error = attempted(sys.stdin.read(), [Told(events)])
    if error is not None:
        Told(events).emit({"event": "error", "error": error})
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main())
