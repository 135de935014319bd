"""Execution: how a run is computed, not what it is; in the record, but not in the id."""

import os
from dataclasses import dataclass

import torch

from sterad.errors import SteradError


@dataclass(frozen=True)
class Execution:
    """Two runs of one config under one execution on one machine are equal to the bit."""

    device: str = "cpu"
    threads: int = 1
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
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        threads = (cores or 1) if threads is None else threads
        if threads < 1:
            raise SteradError(f"threads {threads} is below 1: give the number of processor threads")
        return cls(device=device, threads=threads)

    def apply(self) -> None:
        """Set what torch keeps per process."""
        torch.set_num_threads(self.threads)
