"""Execution: how a run is computed, not what it is; in the record, but not in the id."""

import os
from dataclasses import dataclass, replace

import torch

from sterad.errors import SteradError

SMALL = 16
"""Sides of images up to which one thread is faster than several."""


@dataclass(frozen=True)
class Execution:
    """Two runs of one config under one execution on one machine are equal to the bit."""

    device: str = "cpu"
    threads: int | None = None
    """Processor threads; None until the run knows its images."""
    view_threads: int | None = None
    """Views that go through the network side by side, with a thread each; None until then, too."""
    memory_format: str = "channels_last"
    precision: str = "float32"
    compile: bool = False

    @classmethod
    def chosen(cls, device: str | None = None, threads: int | None = None) -> "Execution":
        """Return what this machine does best, with the user's word above it."""
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise SteradError(
                f"device {device!r} is not to be had here ({str(error).splitlines()[0]}): use cpu"
            ) from error
        if threads is not None and threads < 1:
            raise SteradError(f"threads {threads} is below 1: give the number of processor threads")
        return cls(device=device, threads=threads)

    def settled(self, input_shape: tuple[int, ...]) -> "Execution":
        """Return the execution with the numbers of threads that suit inputs of a shape.

        Maps of small images are so small that threads wait for each other longer than they work:
        a step of AGD-FD on digits takes 0.3 s with one thread and 0.5 s with two. Views side by
        side do not wait for each other: they take all the threads there are.
        """
        usual = 1 if input_shape[-1] <= SMALL else cores()
        beside = 1 if self.device != "cpu" else self.threads or cores()
        return replace(
            self, threads=self.threads or usual, view_threads=self.view_threads or beside
        )

    def apply(self) -> None:
        """Set what torch keeps per process."""
        torch.set_num_threads(self.threads or cores())


def cores() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
