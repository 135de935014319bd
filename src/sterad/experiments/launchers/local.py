"""Local: a process a run on this machine, so many at a time."""

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
from sterad.experiments.launchers.job import LAUNCHERS, Job, Outcome, Watch, ended
from sterad.threads import cores, set_wait_policy
from sterad.validation import Count, check_fields

RUNS_PER_CORE = 4
"""Runs at a time on each core, at most: more of them only take each other's memory."""
PATIENCE = 10.0
"""Seconds in which a worker that is asked to end does so, before it is made to."""


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    told: IO[bytes]
    asked: IO[bytes]
    """Open as long as the run is wanted: a worker that reads its end ends, too."""
    complaints: IO[bytes]
    begun: bytes = b""
    """What has been read of a line that is not complete yet."""
    error: str | None = None


@LAUNCHERS.register("local")
@dataclass(frozen=True)
class Local:
    """Processes on this machine; its cores are shared out among them."""

    workers: Count | None = None
    """Runs at a time; one for each core by default."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.workers is not None and self.workers > (most := RUNS_PER_CORE * cores()):
            raise SteradError(
                f"workers {self.workers} is more than this machine can run at a time: it has "
                f"{cores()} cores, so give at most {most}"
            )

    def launch(self, jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
        """Yield outcomes as runs end; a process that dies is an outcome with an error."""
        places = min(self.workers or cores(), max(1, len(jobs)))
        waiting = deque(self._shared_out(job, places) for job in jobs)
        running: list[_Running] = []
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
            stack.callback(_stop, running)
            while waiting or running:
                while waiting and len(running) < places:
                    running.append(one := _start(waiting.popleft()))
                    selector.register(one.told, selectors.EVENT_READ, one)
                for key, _ in selector.select():
                    one = key.data
                    if some := os.read(one.told.fileno(), 1 << 16):
                        _hear(one, some, watch)
                    else:
                        selector.unregister(one.told)
                        outcome = _ended(one)
                        running.remove(one)
                        yield outcome

    def _shared_out(self, job: Job, places: int) -> Job:
        """Give each run its share of the cores, where the user has not said how many threads.

        Two runs with a thread each do more than one run with two, as small maps thread badly.
        """
        if job.execution.threads is not None or places == 1:
            return job
        threads = max(1, cores() // places)
        return replace(job, execution=replace(job.execution, threads=threads))


def _start(job: Job) -> _Running:
    environment = dict(os.environ)
    set_wait_policy(environment)  # threads that spin slow down the runs beside them
    complaints = _scratch()
    process = subprocess.Popen(
        [sys.executable, "-m", "sterad.experiments.launchers.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        bufsize=0,
        env=environment,
    )
    told, asked = process.stdout, process.stdin
    if told is None or asked is None:
        raise AssertionError("both were asked for as pipes")
    with contextlib.suppress(BrokenPipeError):
        asked.write(job.to_json().encode() + b"\n")
    return _Running(job, process, told, asked, complaints)


def _scratch() -> IO[bytes]:
    """Return a file for a worker's complaints, which a full disk is no reason to go without."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "rb+")


def _hear(one: _Running, some: bytes, watch: Watch) -> None:
    *lines, one.begun = (one.begun + some).split(b"\n")
    for event in map(json.loads, lines):
        if event["event"] == "error":
            one.error = event["error"]
        elif watch(one.job.id, event):
            one.process.terminate()


def _ended(one: _Running) -> Outcome:
    code = one.process.wait()
    if one.error is None and code:
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        one.complaints.seek(0)
        last = one.complaints.read().decode(errors="replace").strip().rpartition("\n")[2]
        said = f" ({last})" if last else ""
        one.error = f"its process ended by {how}{said}; the same command continues it"
    _close(one)
    return ended(one.job, one.error)


def _stop(running: Sequence[_Running]) -> None:
    """End what still runs when the launcher is left: checkpoints stay."""
    for one in running:
        one.process.terminate()
    for one in running:
        try:
            one.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # a plugin may have taken the signal for itself
            one.process.kill()
            one.process.wait()
        _close(one)


def _close(one: _Running) -> None:
    for file in (one.told, one.asked, one.complaints):
        file.close()
