"""Worker process of the local launcher: runs the job on standard input, prints events as JSON."""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from sterad.experiments.launchers.job import run_job


def main() -> int:
    """Run one job; its record stays in its directory, an error is printed as the last line."""
    # Send what methods and libraries print to stderr, so that stdout has events only.
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def print_event(event: Mapping[str, Any]) -> None:
        print(json.dumps(event), file=stdout, flush=True)

    # Ctrl-C reaches every process of a terminal; the launcher ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = sys.stdin.readline()
    threading.Thread(target=_exit_with_launcher, daemon=True).start()
    error = run_job(job, print_event)
    if error is not None:
        print_event({"event": "error", "error": error})
    return 0 if error is None else 1


def _exit_with_launcher() -> None:
    """Exit when the launcher closes the pipe, which happens even if it is killed.

    Otherwise this process would still hold the lock of its run when the study is started again.
    """
    # Reads the descriptor, because a blocked sys.stdin would prevent a normal exit.
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
