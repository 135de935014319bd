"""Slurm: an array a study through submitit; a preempted run continues from its checkpoint."""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from sterad.errors import SteradError
from sterad.experiments.launchers.job import LAUNCHERS, Job, Outcome, Watch, attempted
from sterad.extras import require_extra
from sterad.threads import cores
from sterad.validation import Count, Positive, Range, check_fields

LARGEST = 1000
"""Jobs of an array: Slurm's own limit where nobody has raised it."""
PULSE = {"slurm": 5.0, "local": 0.5}
"""Seconds between two looks at the files of runs; submitit asks Slurm itself less often."""
TIMEOUTS = 100
"""Times that a run may reach the end of its time and be queued again."""


@LAUNCHERS.register("slurm")
@dataclass(frozen=True)
class Slurm:
    """Jobs of Slurm arrays; all machines see the runs' folder and the same Python."""

    workers: Count | None = None
    """Runs at a time; as many as Slurm gives by default."""
    partition: str | None = None
    """Partition of the jobs; Slurm's default where not given."""
    account: str | None = None
    """Account that the time is charged to."""
    minutes: Count = 240
    """Time limit of a job; a run that reaches it is queued again and continues."""
    memory_gb: Positive = 8.0
    """Main memory of a job."""
    cpus: Annotated[int, Range(1, 4096)] = 1
    """Processors of each run; also its threads."""
    gpus: Annotated[int, Range(0, 4096)] = 0
    """Graphics cards of each run."""
    retries: Annotated[int, Range(0, 1000)] = 2
    """Times that a run is submitted anew whose job died."""
    cluster: Literal["slurm", "local"] = "slurm"
    """slurm, or local for processes of this machine that behave like jobs."""

    def __post_init__(self) -> None:
        check_fields(self)

    def launch(self, jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
        """Yield outcomes as runs end; a run whose job dies is submitted again."""
        waiting = [_Away(job.reserved(self.cpus, self.gpus)) for job in jobs]
        while waiting:
            array, waiting = waiting[: self._largest()], waiting[self._largest() :]
            executor = self._executor(array[0].job.out)
            texts = [one.job.to_json() for one in array]
            told = [one.told(executor.folder) for one in array]
            for one, ticket in zip(array, executor.map_array(Resumed(), texts, told), strict=True):
                one.ticket = ticket
            yield from self._followed(array, watch, waiting)

    def _followed(
        self, array: list["_Away"], watch: Watch, waiting: list["_Away"]
    ) -> Iterator[Outcome]:
        """Yield what comes of an array; those whose job died wait for the next one."""
        with contextlib.ExitStack() as stack:
            stack.callback(_cancel, array)
            while array:
                time.sleep(PULSE[self.cluster])
                for one in [*array]:
                    done = one.ticket.done()  # asked before the last events are read
                    for event in one.news():
                        watch(one.job.id, event)
                    if done:
                        array.remove(one)
                        outcome = one.outcome()
                        if outcome is not None:
                            yield outcome
                        elif one.tries > self.retries:
                            yield Outcome(one.job, error=one.last_words())
                        else:
                            waiting.append(one)

    def _largest(self) -> int:
        """Return the jobs of an array; a machine alone has no queue in which more could wait."""
        return (self.workers or cores()) if self.cluster == "local" else LARGEST

    def _executor(self, out: Path) -> Any:
        submitit = require_extra("submitit", "slurm")
        try:
            executor = submitit.AutoExecutor(
                out.resolve() / "slurm", cluster=self.cluster, slurm_max_num_timeout=TIMEOUTS
            )
        except RuntimeError as error:
            raise SteradError(
                f"Slurm is not to be had here ({error}): go to a machine that has sbatch, or use "
                "--launcher local"
            ) from error
        executor.update_parameters(
            name="sterad",
            timeout_min=self.minutes,
            mem_gb=self.memory_gb,
            cpus_per_task=self.cpus,
            gpus_per_node=self.gpus,
            slurm_partition=self.partition,
            slurm_account=self.account,
            slurm_array_parallelism=self.workers or LARGEST,
        )
        return executor


class Resumed:
    """What runs in a job; submitit asks `checkpoint` how to go on after preemption."""

    def __call__(self, text: str, told: str) -> None:
        """Run a job; a sentence about what went wrong goes to the file `told`."""
        error = attempted(text)
        if error is not None:
            Path(told).write_text(error)

    def checkpoint(self, text: str, told: str) -> Any:
        """Submit the same again: the run's own checkpoint says where it stood."""
        return require_extra("submitit", "slurm").helpers.DelayedSubmission(self, text, told)


@dataclass
class _Away:
    job: Job
    ticket: Any = None
    tries: int = 0
    """Times that it has been submitted."""
    sentence: Path = field(default=Path())
    file: int | None = None
    """Number of the file of events that was read the last time."""
    read: int = 0
    """Bytes of it that have been read."""

    def told(self, folder: Path) -> str:
        """Return the file for what went wrong, cleared of what was told the last time."""
        self.job = replace(self.job, out=self.job.out.resolve())
        self.sentence, self.tries = Path(folder) / f"{self.job.id}.txt", self.tries + 1
        self.sentence.parent.mkdir(parents=True, exist_ok=True)
        self.sentence.unlink(missing_ok=True)
        return str(self.sentence)

    def news(self) -> Iterator[Mapping[str, Any]]:
        """Yield the events that have been written since the last time."""
        if not self.job.place.events.exists():
            return
        with open(self.job.place.events, "rb") as file:
            written, content = os.fstat(file.fileno()).st_ino, file.read()
        if self.file not in (None, written):
            # A run that continues writes a new file with what it keeps, and says that it goes on.
            resumed = content.rfind(b'{"event": "resume"')
            self.read = len(content) if resumed < 0 else resumed
        end = content.rfind(b"\n") + 1
        lines = content[self.read : end].splitlines()
        self.file, self.read = written, max(self.read, end)
        for line in lines:
            with contextlib.suppress(ValueError):
                yield json.loads(line)

    def outcome(self) -> Outcome | None:
        """Return what came of the job, or nothing where it died without a word."""
        try:
            if (record := self.job.place.read_record()) is not None:
                return Outcome(self.job, record)
        except SteradError as error:
            return Outcome(self.job, error=str(error))
        if self.sentence.exists():
            return Outcome(self.job, error=self.sentence.read_text())
        return None

    def last_words(self) -> str:
        """Return how the job ended that nobody has explained."""
        said = (self.ticket.stderr() or "").strip().rpartition("\n")[2]
        return (
            f"its job ended as {self.ticket.state} without a record, {self.tries} times ({said}); "
            f"see {str(self.ticket.paths.stderr)!r}; the same command continues it"
        )


def _cancel(array: Sequence[_Away]) -> None:
    """End what still runs when the launcher is left: checkpoints stay."""
    for one in array:
        with contextlib.suppress(Exception):  # one that has just ended is no trouble
            one.ticket.cancel()
