"""Execution: how a run is computed, not what it is; in the record, but not in the id."""

import os
from dataclasses import dataclass, replace

import torch

from sterad.errors import SteradError
from sterad.experiments.allocator import keep_freed_memory

PRECISIONS = ("float32", "bfloat16", "float16")
FORMATS = ("channels_last", "contiguous")
LONG = 2000
"""Steps from which on a graphics card earns the time back that compiling takes."""
SMALL = 16
"""Sides of images up to which one thread is faster than several, and short formats gain little."""


@dataclass(frozen=True)
class Execution:
    """Two runs of one config under one execution on one machine are equal to the bit."""

    device: str = "cpu"
    threads: int | None = None
    """Processor threads; None until the run knows its images."""
    view_threads: int | None = None
    """Views that go through the network side by side, with a thread each; None until then, too."""
    memory_format: str = "channels_last"
    precision: str | None = None
    """Of the encoder; weights, heads and losses are float32 always. None until then, too."""
    compile: bool | None = None
    """Whether torch compiles the network first; None until the length of the run is known."""
    keeps_memory: bool = True
    """Whether freed memory is kept for the next step, where the allocator can."""

    @classmethod
    def chosen(
        cls,
        device: str | None = None,
        threads: int | None = None,
        precision: str | None = None,
        compile: bool | None = None,
        view_threads: int | None = None,
        memory_format: str = "channels_last",
        keeps_memory: bool = True,
    ) -> "Execution":
        """Return what this machine does best, with the user's word above it."""
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise SteradError(
                f"device {device!r} is not to be had here ({str(error).splitlines()[0]}): use cpu"
            ) from error
        for name, count in (("threads", threads), ("view_threads", view_threads)):
            if count is not None and count < 1:
                raise SteradError(f"{name} {count} is below 1: give the number of threads")
        named = (("precision", precision, PRECISIONS), ("memory_format", memory_format, FORMATS))
        for name, given, known in named:
            if given is not None and given not in known:
                raise SteradError(f"unknown {name} {given!r}: known are {', '.join(known)}")
        return cls(device, threads, view_threads, memory_format, precision, compile, keeps_memory)

    def settled(self, input_shape: tuple[int, ...], steps: int | None = None) -> "Execution":
        """Return the execution with the threads and the precision that suit inputs of a shape.

        steps: batches of the stream, if it has an end. Compiling takes a minute: on a graphics card
        a long run earns it back. On a processor views side by side leave it little to gain, and
        nothing at the published width: only who asks gets it.

        Maps of small images are so small that threads wait for each other longer than they work:
        a step of AGD-FD on digits takes 0.3 s with one thread and 0.5 s with two. Views side by
        side do not wait for each other: they take all the threads there are.
        """
        usual = 1 if input_shape[-1] <= SMALL else cores()
        beside = 1 if self.device != "cpu" else self.threads or cores()
        long = self.device != "cpu" and (steps is None or steps >= LONG)
        return replace(
            self,
            threads=self.threads or usual,
            view_threads=self.view_threads or beside,
            precision=self.precision or _precision(self.device, input_shape),
            compile=long if self.compile is None else self.compile,
        )

    def apply(self) -> None:
        """Set what torch keeps per process."""
        torch.set_num_threads(self.threads or cores())
        if self.keeps_memory and self.device == "cpu":
            keep_freed_memory()


def _precision(device: str, input_shape: tuple[int, ...]) -> str:
    """Return the fastest precision that a device has units for.

    A processor with units for bfloat16 takes 0.5 to 0.65 of the time for images of 32 pixels, and
    0.9 for those of 8, which is not worth the rounding; one without is 24 times slower.
    """
    if torch.device(device).type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    large = len(input_shape) == 3 and input_shape[-1] > SMALL
    return "bfloat16" if device == "cpu" and large and multiplies_bfloat16() else "float32"


def multiplies_bfloat16() -> bool:
    """Return whether this processor has instructions for products of bfloat16."""
    ways = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, way, bool)() for way in ways)


def cores() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
