"""Ray: runs as tasks on a cluster; their files are sent back, so no shared disk is needed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import sterad
from sterad.errors import SteradError
from sterad.experiments.launchers.job import (
    LAUNCHERS,
    EventCallback,
    Job,
    Outcome,
    last_line,
    shorten_error,
)
from sterad.experiments.launchers.remote_job import (
    RAY_TIMEOUT_S,
    RemoteJob,
    run_remote_job,
    store_result,
)
from sterad.experiments.run import CODE_VERSION_VARIABLE, code_version
from sterad.optional_imports import require_extra
from sterad.threads import WAIT_POLICY, cores
from sterad.validation import Count, Range, check_fields

MAX_SUBMITTED_RUNS = 200
"""Limits the number of open files: every submitted run holds a lock."""
POLL_INTERVAL_S = 0.5
"""Seconds between two requests for new events."""
OBJECT_STORE_BYTES = 200 * 2**20
"""Size of the object store of a cluster that is started here."""


@LAUNCHERS.register("ray")
@dataclass(frozen=True)
class Ray:
    """Tasks on a Ray cluster, an existing one or one that is started here."""

    address: str | None = None
    """HOST:PORT of a cluster's head, or auto for the cluster of this machine (default: start a
    cluster here for the duration of the study)."""
    workers: Count | None = None
    """Number of concurrent runs (default: as many as the cluster has room for)."""
    cpus: Annotated[float, Range(0, 4096)] = 1.0
    """CPUs reserved for each run, and its number of threads."""
    gpus: Annotated[float, Range(0, 4096)] = 0.0
    """GPUs reserved for each run; with 0.25, four runs share one."""
    retries: Annotated[int, Range(0, 1000)] = 3
    """How often a run is restarted if its worker or machine dies."""
    shared: bool = False
    """Whether the workers have the runs' folder under the same path. A run whose machine dies then
    continues on another one from its checkpoint; otherwise it starts again."""

    def __post_init__(self) -> None:
        check_fields(self)

    def launch(self, jobs: Sequence[Job], on_event: EventCallback) -> Iterator[Outcome]:
        """Yield outcomes as runs end; a run whose worker dies is retried."""
        ray = require_extra("ray", "ray")
        with self._connect(ray):
            # max_calls=1 gives every run its own process: its peak memory is measured alone.
            task = ray.remote(
                num_cpus=self.cpus, num_gpus=self.gpus, max_retries=self.retries, max_calls=1
            )(run_remote_job)
            actor = ray.remote(num_cpus=0)(EventActor).remote()
            waiting = deque(job.with_resources(self.cpus, self.gpus) for job in jobs)
            with contextlib.closing(RayJobs(ray, task, actor, self.shared)) as submitted:
                while waiting or submitted.running:
                    while waiting and len(submitted.running) < (self.workers or MAX_SUBMITTED_RUNS):
                        if (failure := submitted.submit(waiting.popleft())) is not None:
                            yield failure
                    finished = ray.wait(list(submitted.running), timeout=POLL_INTERVAL_S)[0]
                    # A finished run has sent every event, but an earlier request may miss the last.
                    timeouts = (RAY_TIMEOUT_S, RAY_TIMEOUT_S) if finished else (POLL_INTERVAL_S,)
                    for timeout in timeouts:
                        for run, event in submitted.take_events(timeout):
                            on_event(run, event)
                    yield from submitted.take_outcomes(finished)

    @contextlib.contextmanager
    def _connect(self, ray: Any) -> Iterator[None]:
        if ray.is_initialized():  # use the caller's connection, and keep it
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self.address is not None:
            _check_address(self.address)
        try:
            self._init_ray(ray)
            if self.address is None:  # other clusters may grow
                self._check_resources(ray.cluster_resources())
            yield
        finally:
            ray.shutdown()

    def _init_ray(self, ray: Any) -> None:
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:
            options = {
                "address": "local",
                "num_cpus": max(cores(), self.workers or 1),
                "include_dashboard": False,
                "object_store_memory": OBJECT_STORE_BYTES,
            }
        # The workers get this package, and its version for provenance.
        version = {CODE_VERSION_VARIABLE: json.dumps(code_version())}
        package = str(Path(sterad.__file__).parent)
        environment = {"py_modules": [package], "env_vars": WAIT_POLICY | version}
        handler = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(**options, runtime_env=environment, log_to_driver=False, logging_level=40)
        except Exception as error:  # Ray documents no type
            raise SteradError(
                f"Ray does not start ({shorten_error(error)}): the machine may be too busy; try "
                "again later, or use --launcher local"
            ) from error
        if callable(handler):  # Ray's own handler ends this process without a message
            signal.signal(signal.SIGTERM, handler)

    def _check_resources(self, available: Mapping[str, float]) -> None:
        for name, needed in (("CPU", self.cpus), ("GPU", self.gpus)):
            if needed > available.get(name, 0):
                raise SteradError(
                    f"each run needs {needed:g} {name} and this machine has "
                    f"{available.get(name, 0):g}: reserve less, or give a cluster with --address"
                )


class EventActor:
    """A Ray actor that stores the events of all runs until the driver takes them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def add(self, run: str, event: Any) -> None:
        """Store an event of a run."""
        self.events.append((run, event))

    def take(self) -> list[tuple[str, Any]]:
        """Return the stored events and remove them."""
        events, self.events = self.events, []
        return events


@dataclass
class RayJobs:
    """The submitted jobs of a driver: their Ray references, and the locks of their directories."""

    ray: Any
    task: Any
    actor: Any
    shared: bool
    running: dict[Any, tuple[Job, contextlib.ExitStack]] = field(default_factory=dict)
    request: Any = None
    """The events that the actor has not returned yet."""

    def submit(self, job: Job) -> Outcome | None:
        """Submit a job; return an outcome if that fails.

        Without a shared disk this process writes the results, so it holds the lock of the run.
        """
        lock = contextlib.ExitStack()
        try:
            if not self.shared:
                lock.enter_context(job.directory.locked())
            remote = RemoteJob.create(job, self.shared)
        except SteradError as error:
            lock.close()
            return Outcome(job, error=str(error))
        self.running[self.task.remote(remote, self.actor)] = job, lock
        return None

    def take_events(self, timeout: float) -> list[tuple[str, Any]]:
        """Return the events since the last call, or none if the actor does not reply in time.

        A late reply is returned by the next call: the actor has removed its events already.
        """
        self.request = self.request or self.actor.take.remote()
        if not self.ray.wait([self.request], timeout=timeout)[0]:
            return []
        request, self.request = self.request, None
        events: list[tuple[str, Any]] = []
        with contextlib.suppress(self.ray.exceptions.RayError):  # lost events do not stop a study
            events = self.ray.get(request)
        return events

    def take_outcomes(self, finished: list[Any]) -> Iterator[Outcome]:
        """Yield the outcomes of finished jobs and release their locks."""
        for reference in finished:
            job, lock = self.running.pop(reference)
            with lock:
                try:
                    error, files = self.ray.get(reference)
                except self.ray.exceptions.RayError as failure:
                    error = f"its worker died in every attempt: {shorten_error(failure)}"
                    files = {}
                yield store_result(job, error, files)

    def close(self) -> None:
        """Cancel the jobs that still run when the launcher is left, and release their locks."""
        for reference, (_, lock) in self.running.items():
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.cancel(reference, force=True)
            lock.close()


CONNECT_SCRIPT = """
import ray, sys
print("imported", flush=True)
ray.init(address=sys.argv[1], logging_level=40)
"""


def _check_address(address: str) -> None:
    """Raise an error if there is no cluster at an address."""
    if (reason := _find_connection_error(address)) is not None:
        raise SteradError(
            f"cannot connect to a Ray cluster at {address!r} ({reason}): give the HOST:PORT that "
            "`ray start --head` printed, or leave out --address to start a cluster here"
        )


def _find_connection_error(address: str) -> str | None:
    """Connect to the port of an address, which fails fast, then to its cluster.

    A new process connects to the cluster: in this one Ray would retry for minutes and then end it.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            timeout = RAY_TIMEOUT_S / 2
            socket.create_connection((host.strip("[]"), int(port)), timeout=timeout).close()
        except (OSError, OverflowError) as error:
            return str(error)
    command = [sys.executable, "-c", CONNECT_SCRIPT, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if process.stdout is not None:
            process.stdout.readline()  # the time to import Ray does not count
        try:
            _, errors = process.communicate(timeout=RAY_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"no reply in {RAY_TIMEOUT_S:g} s"
    return last_line(errors.decode(errors="replace")) if process.returncode else None
