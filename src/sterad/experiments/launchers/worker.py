"""Worker: a process that runs the job on its standard input and tells events as lines of JSON."""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any, Self, TextIO

from sterad.experiments.launchers.job import attempted


class Told:
    """A logger that writes each event as a line."""

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
    # Ctrl-C reaches every process of a terminal: the one that started this one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = sys.stdin.readline()
    threading.Thread(target=_end_with_the_study, daemon=True).start()
    error = attempted(job, [Told(events)])
    if error is not None:
        Told(events).emit({"event": "error", "error": error})
    return 0 if error is None else 1


def _end_with_the_study() -> None:
    """End this process when the study's end of the pipe closes, as it does even after SIGKILL.

    Whoever starts the study again then finds nobody at work in its directory.
    """
    os.read(sys.stdin.fileno(), 1)  # of the descriptor: a lock of sys.stdin would hinder the exit
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
