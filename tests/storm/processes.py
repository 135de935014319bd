"""Processes that are killed: forks of this process, which has imported torch, or new ones.

A fork costs milliseconds where a new process imports torch for seconds. This process must not start
threads before it forks: it only imports, sends signals and reads files.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from sterad.cli import main

POLL_INTERVAL_S = 0.0005
TIMEOUT_S = 1800.0
"""A process that takes longer hangs, also on a busy machine."""


class Process(Protocol):
    """The part of `subprocess.Popen` that is used here."""

    def poll(self) -> int | None:
        """Return the exit code, minus the number of the signal that ended it, or None."""

    def send_signal(self, sig: int, /) -> None:
        """Send a signal, unless the process has ended."""


class Fork:
    """A fork of this process that calls a function; its result is the exit code."""

    def __init__(self, function: Callable[[], int], output: Path) -> None:
        """Fork; standard output and standard error are appended to `output`."""
        sys.stdout.flush()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _call_and_exit(function, output)

    def poll(self) -> int | None:
        """Return the exit code, minus the number of the signal that ended it, or None."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def _call_and_exit(function: Callable[[], int], output: Path) -> None:
    """Call a function in the child, and exit without the parent's cleanup."""
    code = 1
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        code = function()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def fork_command(argv: Sequence[str], output: Path) -> Process:
    """Start a command of sterad in a fork."""
    return Fork(lambda: main(argv), output)


def start_command(argv: Sequence[str], output: Path) -> Process:
    """Start a command of sterad in a new process."""
    with open(output, "ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "sterad.cli", *argv],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )


def wait(
    process: Process, until: Callable[[], bool] = lambda: False, timeout: float = TIMEOUT_S
) -> int | None:
    """Wait until a process ends or a condition holds; return the exit code of a process that ended.

    A process that hangs is killed, and a TimeoutError is raised.
    """
    deadline = time.monotonic() + timeout
    while (code := process.poll()) is None and not until():
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGKILL)
            raise TimeoutError(f"a process has not ended in {timeout:g} s")
        time.sleep(POLL_INTERVAL_S)
    return code
