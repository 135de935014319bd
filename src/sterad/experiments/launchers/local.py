"""Local: runs on this machine, each in its own process."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO

from sterad.errors import SteradError
from sterad.experiments.launchers.job import (
    LAUNCHERS,
    EventCallback,
    Job,
    Outcome,
    last_line,
    read_outcome,
)
from sterad.threads import cores, set_wait_policy
from sterad.validation import Count, check_fields

MAX_RUNS_PER_CORE = 4
"""More concurrent runs are not faster and need more memory."""
TERMINATE_TIMEOUT_S = 10.0
"""Seconds between SIGTERM and SIGKILL."""
READ_BYTES = 1 << 16


@dataclass
class _Worker:
    """A worker process; it exits when its standard input, which had its job, is closed."""

    job: Job
    process: subprocess.Popen[bytes]
    stdout: IO[bytes]
    """Events, one JSON object per line."""
    stderr: IO[bytes]
    incomplete_line: bytes = b""
    error: str | None = None


@LAUNCHERS.register("local")
@dataclass(frozen=True)
class Local:
    """Processes on this machine, which share its cores."""

    workers: Count | None = None
    """Number of concurrent runs (default: number of cores)."""

    def __post_init__(self) -> None:
        check_fields(self)
        limit = MAX_RUNS_PER_CORE * cores()
        if self.workers is not None and self.workers > limit:
            raise SteradError(
                f"workers {self.workers} is more than this machine can run at a time: it has "
                f"{cores()} cores, so give at most {limit}"
            )

    def launch(self, jobs: Sequence[Job], on_event: EventCallback) -> Iterator[Outcome]:
        """Yield outcomes as runs end; a process that dies is an outcome with an error."""
        slots = min(self.workers or cores(), max(1, len(jobs)))
        waiting = deque(_share_threads(job, slots) for job in jobs)
        running: list[_Worker] = []
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
            stack.callback(_terminate_all, running)
            while waiting or running:
                while waiting and len(running) < slots:
                    running.append(worker := _start_worker(waiting.popleft()))
                    selector.register(worker.stdout, selectors.EVENT_READ, worker)
                for key, _ in selector.select():
                    worker = key.data
                    if content := os.read(key.fd, READ_BYTES):
                        _handle_output(worker, content, on_event)
                    else:
                        selector.unregister(worker.stdout)
                        outcome = _finish(worker)
                        running.remove(worker)
                        yield outcome


def _share_threads(job: Job, slots: int) -> Job:
    """Give each run its share of the cores, unless the user has set the number of threads.

    Two runs with one thread each are faster than one after the other with two threads: small
    feature maps do not parallelize well.
    """
    if job.execution.threads is not None or slots == 1:
        return job
    threads = max(1, cores() // slots)
    return replace(job, execution=replace(job.execution, threads=threads))


def _start_worker(job: Job) -> _Worker:
    environment = dict(os.environ)
    set_wait_policy(environment)  # spinning threads would slow down the other runs
    stderr = _open_stderr()
    process = subprocess.Popen(
        [sys.executable, "-m", "sterad.experiments.launchers.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(job.to_json().encode() + b"\n")
    return _Worker(job, process, process.stdout, stderr)


def _open_stderr() -> IO[bytes]:
    """Return a temporary file, or the null device if the disk is full."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "rb+")


def _handle_output(worker: _Worker, content: bytes, on_event: EventCallback) -> None:
    *lines, worker.incomplete_line = (worker.incomplete_line + content).split(b"\n")
    for event in map(json.loads, lines):
        if event["event"] == "error":
            worker.error = event["error"]
        elif on_event(worker.job.id, event):
            worker.process.terminate()


def _finish(worker: _Worker) -> Outcome:
    with worker.process, worker.stderr:  # closes the pipes
        code = worker.process.wait()
        if worker.error is None and code:
            end = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            worker.stderr.seek(0)
            reason = last_line(worker.stderr.read().decode(errors="replace"))
            details = f" ({reason})" if reason else ""
            worker.error = f"its process ended with {end}{details}; the same command continues it"
    return read_outcome(worker.job, worker.error)


def _terminate_all(workers: Sequence[_Worker]) -> None:
    """End the processes that still run when the launcher is left; their checkpoints are kept."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        with worker.process:  # waits, and closes the pipes
            try:
                worker.process.wait(TERMINATE_TIMEOUT_S)
            except subprocess.TimeoutExpired:  # a plugin may have replaced the signal handler
                worker.process.kill()
        worker.stderr.close()  # `_finish` may have been interrupted after it closed the file
