"""Slurm: runs as array jobs through submitit; preempted runs continue from their checkpoints."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from sterad.errors import SteradError
from sterad.experiments.launchers.job import (
    LAUNCHERS,
    EventCallback,
    Job,
    Outcome,
    last_line,
    read_outcome,
    run_job,
)
from sterad.optional_imports import require_extra
from sterad.results.run_directory import parse_event
from sterad.threads import cores
from sterad.validation import Count, Positive, Range, check_fields

MAX_ARRAY_SIZE = 1000
"""Jobs of an array: the default limit of Slurm."""
POLL_INTERVAL_S = {"slurm": 5.0, "local": 0.5}
"""Seconds between two looks at the files of runs; submitit polls Slurm itself less often."""
MAX_TIMEOUTS = 100
"""How often a run may reach its time limit and be queued again."""


@LAUNCHERS.register("slurm")
@dataclass(frozen=True)
class Slurm:
    """Slurm array jobs; all machines need the runs' folder and the same Python environment."""

    workers: Count | None = None
    """Number of concurrent runs (default: as many as Slurm starts)."""
    partition: str | None = None
    """Partition of the jobs (default: that of Slurm)."""
    account: str | None = None
    """Account that the time is charged to."""
    minutes: Count = 240
    """Time limit of a job; a run that reaches it is queued again and continues."""
    memory_gb: Positive = 8.0
    """Main memory of a job."""
    cpus: Annotated[int, Range(1, 4096)] = 1
    """CPUs of each run, and its number of threads."""
    gpus: Annotated[int, Range(0, 4096)] = 0
    """GPUs of each run."""
    retries: Annotated[int, Range(0, 1000)] = 2
    """How often a run is submitted again if its job dies."""
    cluster: Literal["slurm", "local"] = "slurm"
    """slurm, or local for processes on this machine that behave like jobs."""

    def __post_init__(self) -> None:
        check_fields(self)

    def launch(self, jobs: Sequence[Job], on_event: EventCallback) -> Iterator[Outcome]:
        """Yield outcomes as runs end; a run whose job dies is submitted again."""
        jobs = [replace(job, out=job.out.resolve()) for job in jobs]
        waiting = [_ArrayJob(job.with_resources(self.cpus, self.gpus)) for job in jobs]
        size = (self.workers or cores()) if self.cluster == "local" else MAX_ARRAY_SIZE
        while waiting:
            array, waiting = waiting[:size], waiting[size:]
            for array_job in array:
                array_job.attempts += 1
                array_job.error_file.unlink(missing_ok=True)
            texts = [array_job.job.to_json() for array_job in array]
            error_files = [str(array_job.error_file) for array_job in array]
            executor = self._create_executor(array[0].error_file.parent)
            handles = executor.map_array(ResumableTask(), texts, error_files)
            for array_job, handle in zip(array, handles, strict=True):
                array_job.handle = handle
            yield from self._follow(array, on_event, waiting)

    def _follow(
        self, array: list["_ArrayJob"], on_event: EventCallback, waiting: list["_ArrayJob"]
    ) -> Iterator[Outcome]:
        """Yield the outcomes of an array; append jobs that died to `waiting`."""
        try:
            while array:
                time.sleep(POLL_INTERVAL_S[self.cluster])
                for array_job in [*array]:
                    done = array_job.handle.done()  # first, so that no last event is missed
                    for event in array_job.read_new_events():
                        on_event(array_job.job.id, event)
                    if done:
                        array.remove(array_job)
                        outcome = array_job.find_outcome()
                        if outcome is not None:
                            yield outcome
                        elif array_job.attempts > self.retries:
                            yield Outcome(array_job.job, error=array_job.describe_death())
                        else:
                            waiting.append(array_job)
        finally:  # checkpoints are kept
            for array_job in array:
                with contextlib.suppress(Exception):  # it may just have ended
                    array_job.handle.cancel()

    def _create_executor(self, folder: Path) -> Any:
        submitit = require_extra("submitit", "slurm")
        try:
            executor = submitit.AutoExecutor(
                folder, cluster=self.cluster, slurm_max_num_timeout=MAX_TIMEOUTS
            )
        except RuntimeError as error:
            raise SteradError(
                f"Slurm is not available here ({error}): use a machine that has sbatch, or "
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
            slurm_array_parallelism=self.workers or MAX_ARRAY_SIZE,
        )
        return executor


class ResumableTask:
    """The function that a Slurm job runs; submitit calls `checkpoint` when it is preempted."""

    def __call__(self, text: str, error_file: str) -> None:
        """Run a job; write its error message, if any, to a file."""
        if (error := run_job(text)) is not None:
            Path(error_file).write_text(error)

    def checkpoint(self, text: str, error_file: str) -> Any:
        """Submit the same job again: the run continues from its own checkpoint."""
        helpers = require_extra("submitit", "slurm").helpers
        return helpers.DelayedSubmission(self, text, error_file)


@dataclass
class _ArrayJob:
    """A job of an array, and how much of its events has been read."""

    job: Job
    handle: Any = None
    """The job of submitit."""
    attempts: int = 0
    events_inode: int | None = None
    events_read: int = 0
    """Bytes of the events file that have been read."""

    @property
    def error_file(self) -> Path:
        """The file that gets the error message of a failed job, beside submitit's own files."""
        return self.job.out / "slurm" / f"{self.job.id}.txt"

    def read_new_events(self) -> Iterator[Mapping[str, Any]]:
        """Yield the events that have been written since the last call."""
        if not self.job.directory.events.exists():
            return
        with open(self.job.directory.events, "rb") as file:
            inode, content = os.fstat(file.fileno()).st_ino, file.read()
        if self.events_inode not in (None, inode):
            # A resumed run writes a new file: the earlier events, then a "resume" event.
            resumed = content.rfind(b'{"event": "resume"')
            self.events_read = len(content) if resumed < 0 else resumed
        end = content.rfind(b"\n") + 1
        lines = content[self.events_read : end].splitlines()
        self.events_inode, self.events_read = inode, max(self.events_read, end)
        for event in filter(None, map(parse_event, lines)):
            if {"event", "steps", "seconds"} <= event.keys():
                yield event

    def find_outcome(self) -> Outcome | None:
        """Return the outcome of a job, or None if it left neither a record nor an error."""
        if self.job.directory.record.exists():
            return read_outcome(self.job, None)
        if self.error_file.exists():
            return read_outcome(self.job, self.error_file.read_text())
        return None

    def describe_death(self) -> str:
        """Return an error message for a job that left none itself."""
        reason = last_line(self.handle.stderr() or "")
        return (
            f"its job ended as {self.handle.state} without a record, {self.attempts} times "
            f"({reason}); see {str(self.handle.paths.stderr)!r}; the same command continues it"
        )
