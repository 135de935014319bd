"""Ray: a task a run on a cluster; what runs write comes back, so that no shared disk is needed."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import sterad
from sterad.errors import SteradError
from sterad.experiments.launchers.job import LAUNCHERS, Job, Outcome, Watch
from sterad.experiments.launchers.remote_job import PATIENCE, Parcel, delivered, open_and_run
from sterad.experiments.provenance import SHIPPED, code
from sterad.extras import require_extra
from sterad.threads import WAIT_POLICY, cores
from sterad.validation import Count, Range, check_fields

AT_ONCE = 200
"""Runs that are handed over at a time; each of them holds a lock, and so an open file."""
PULSE = 0.5
"""Seconds between two looks at what has been told."""
STORE = 200 * 2**20
"""Bytes for objects on their way in a cluster that is started here."""


@LAUNCHERS.register("ray")
@dataclass(frozen=True)
class Ray:
    """Tasks on a Ray cluster, one that exists or one that is started here."""

    address: str | None = None
    """HOST:PORT of a cluster's head, or auto for the cluster of this machine; by default one is
    started here for the time of the study."""
    workers: Count | None = None
    """Runs at a time; as many as the cluster has room for by default."""
    cpus: Annotated[float, Range(0, 4096)] = 1.0
    """Processors reserved for each run; also its threads."""
    gpus: Annotated[float, Range(0, 4096)] = 0.0
    """Graphics cards reserved for each run; 0.25 lets four runs share one."""
    retries: Annotated[int, Range(0, 1000)] = 3
    """Times that a run is started anew whose worker or machine died."""
    shared: bool = False
    """Whether the workers see the runs' folder under the same path: then a run whose machine died
    continues elsewhere from its checkpoint; otherwise it begins anew there."""

    def __post_init__(self) -> None:
        check_fields(self)

    def launch(self, jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
        """Yield outcomes as runs end; a run whose worker dies is tried again."""
        ray = require_extra("ray", "ray")
        with self._connected(ray), contextlib.ExitStack() as stack:
            ear = ray.remote(num_cpus=0)(_Ear).remote()
            hand = _Hand(ray, self._task(ray), ear, self.shared, secrets.token_hex(8))
            stack.callback(hand.let_go)
            waiting = deque(job.reserved(self.cpus, self.gpus) for job in jobs)
            while waiting or hand.running:
                while waiting and len(hand.running) < (self.workers or AT_ONCE):
                    if (refused := hand.send(waiting.popleft())) is not None:
                        yield refused
                done = hand.done()
                # Who has come back has told all: the answer to an earlier question may not have it.
                for patience in (PATIENCE, PATIENCE) if done else (PULSE,):
                    for run, event in hand.heard(patience):
                        watch(run, event)
                yield from hand.outcomes(done)

    def _task(self, ray: Any) -> Any:
        # A process a run, as everywhere: its peak of memory is its own, and what it breaks too.
        return ray.remote(
            num_cpus=self.cpus, num_gpus=self.gpus, max_retries=self.retries, max_calls=1
        )(open_and_run)

    @contextlib.contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        if ray.is_initialized():  # the caller's own connection is used as it is, and stays
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self.address is not None:
            _check_answer(self.address)
        try:
            self._begin(ray)
            self._check_room(ray)
            yield
        finally:
            ray.shutdown()

    def _begin(self, ray: Any) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(**self._where(), runtime_env=_luggage(), log_to_driver=False, logging_level=40)
        except Exception as error:  # Ray promises no type
            said = " ".join(str(error).split())[:200]
            raise SteradError(
                f"Ray does not start ({said}): a machine that is too busy is one reason; try again "
                "later, or use --launcher local"
            ) from error
        if callable(handler):  # Ray puts its own there, which ends this process without a word
            signal.signal(signal.SIGTERM, handler)

    def _where(self) -> dict[str, Any]:
        if self.address is not None:
            return {"address": self.address}
        own = {"include_dashboard": False, "object_store_memory": STORE}
        return {"address": "local", "num_cpus": max(cores(), self.workers or 1), **own}

    def _check_room(self, ray: Any) -> None:
        """Refuse what a cluster started here can never give; others may grow."""
        has = ray.cluster_resources()
        for name, asked in (("CPU", self.cpus), ("GPU", self.gpus)):
            if self.address is None and asked > has.get(name, 0):
                raise SteradError(
                    f"each run asks for {asked:g} {name} and this machine has "
                    f"{has.get(name, 0):g}: ask for less, or name a cluster with --address"
                )


class _Ear:
    """An actor that keeps what runs tell until the driver asks."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def tell(self, run: str, event: Any) -> None:
        self.told.append((run, event))

    def heard(self) -> list[tuple[str, Any]]:
        told, self.told = self.told, []
        return told


@dataclass
class _Hand:
    """What the driver holds while runs are away: their references and their locks."""

    ray: Any
    task: Any
    ear: Any
    shared: bool
    token: str

    def __post_init__(self) -> None:
        self.running: dict[Any, tuple[Job, contextlib.ExitStack]] = {}
        self.asked: Any = None

    def send(self, job: Job) -> Outcome | None:
        """Hand a job over, or return why not; what comes back can only be written under a lock."""
        held = contextlib.ExitStack()
        try:
            if not self.shared:
                held.enter_context(job.place.locked())
            parcel = Parcel.of(job, self.shared, self.token)
        except SteradError as error:
            held.close()
            return Outcome(job, error=str(error))
        self.running[self.task.remote(parcel, self.ear)] = job, held
        return None

    def heard(self, patience: float) -> list[tuple[str, Any]]:
        """Return what runs have told since the last time.

        An answer that is not here in time comes with the next call: the ear gives it only once.
        """
        self.asked = self.asked or self.ear.heard.remote()
        if not self.ray.wait([self.asked], timeout=patience)[0]:
            return []
        asked, self.asked = self.asked, None
        told: list[tuple[str, Any]] = []
        with contextlib.suppress(self.ray.exceptions.RayError):  # news are not worth a study
            told = self.ray.get(asked)
        return told

    def done(self) -> list[Any]:
        """Return the references of those that have come back, after a short wait for the first."""
        done: list[Any] = self.ray.wait(list(self.running), timeout=PULSE)[0]
        return done

    def outcomes(self, done: list[Any]) -> Iterator[Outcome]:
        """Yield what came of those that have come back."""
        for reference in done:
            job, held = self.running.pop(reference)
            with held:
                yield self._outcome(job, reference)

    def _outcome(self, job: Job, reference: Any) -> Outcome:
        try:
            error, files = self.ray.get(reference)
        except self.ray.exceptions.RayError as lost:
            reason = " ".join(str(lost).split())[:200]
            return Outcome(job, error=f"its worker died each time that it was tried: {reason}")
        return delivered(job, error, files, self.shared)

    def let_go(self) -> None:
        """End what still runs when the launcher is left, and free the directories."""
        for reference, (_, held) in self.running.items():
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.cancel(reference, force=True)
            held.close()


def _luggage() -> dict[str, Any]:
    """Return what the workers are given: this code, and where it is from."""
    package = Path(sterad.__file__).parent
    environment = WAIT_POLICY | {SHIPPED: json.dumps(code())}
    return {"py_modules": [str(package)], "env_vars": environment}


ASK = """
import ray, sys
print("asking", flush=True)
ray.init(address=sys.argv[1], logging_level=40)
"""


def _check_answer(address: str) -> None:
    """Refuse an address at which no cluster is."""
    if (said := _knocked(address) or _asked(address)) is not None:
        raise SteradError(
            f"no Ray cluster answers at {address!r} ({said}): give the HOST:PORT that `ray start "
            "--head` printed, or leave --address away to start one here"
        )


def _knocked(address: str) -> str | None:
    """Return what is wrong with a port; one that nobody listens at is known at once."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE / 2).close()
        except (OSError, OverflowError) as error:
            return str(error)
    return None


def _asked(address: str) -> str | None:
    """Ask in a process of its own: Ray itself would try for minutes and then end this one."""
    words = [sys.executable, "-c", ASK, address]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
        if asking.stdout is not None:
            asking.stdout.readline()  # a busy machine may take its time to import Ray
        try:
            _, errors = asking.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            asking.kill()
            return f"nothing for {PATIENCE:g} s"
    said = errors.decode(errors="replace").strip().rpartition("\n")[2]
    return said if asking.returncode else None
