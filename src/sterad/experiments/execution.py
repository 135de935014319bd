"""Execution: how a run is computed, not what it is; in the record, but not in the id."""

import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from sterad.encoders import NARROW
from sterad.errors import SteradError
from sterad.experiments.allocator import keep_freed_memory

PRECISIONS = ("float32", "bfloat16", "float16")
FORMATS = ("channels_last", "contiguous")
LONG = 2000
"""Steps from which on a graphics card earns the time back that compiling takes."""
WARM_UP = 40.0
"""Seconds that a processor compiles."""
SAVED = 0.013
"""Seconds that a compiled step of 74 images of 32 × 32 pixels saves there, where it saves any."""
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
    """Whether torch compiles what goes through the encoder alone and often; passes side by side
    are not compiled. None until the length of the run is known."""
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

    def settled(
        self, input_shape: tuple[int, ...], width: int, steps: int | None = None
    ) -> "Execution":
        """Return the execution with all that suits a network of a width and inputs of a shape.

        steps: batches of the stream, if it has an end.

        Maps of small images are so small that threads wait for each other longer than they work:
        a step of AGD-FD on digits takes 0.3 s with one thread and 0.5 s with two. Views side by
        side do not wait for each other: they take all the threads there are.
        """
        usual = 1 if input_shape[-1] <= SMALL else cores()
        beside = 1 if self.device != "cpu" else self.threads or cores()
        precision = self.precision or _precision(self.device, input_shape)
        if (compile := self.compile) is None:
            compile = self._earns_compiling(precision, input_shape, width, steps)
        return replace(
            self,
            threads=self.threads or usual,
            view_threads=self.view_threads or beside,
            precision=precision,
            compile=compile,
        )

    def _earns_compiling(
        self, precision: str, input_shape: tuple[int, ...], width: int, steps: int | None
    ) -> bool:
        """Weigh what compiling saves in a run against the time that it takes.

        A graphics card earns it back in a long run. On a processor single passes in bfloat16 take
        0.88 to 0.91 of the time where the channels of narrow layers fill no whole vector, as with a
        width of 20, and as long as before elsewhere: in float32, with a width of 16, 32 or more.
        There a run must save twice what it pays; one that may end any time never does.
        """
        if self.device != "cpu":
            return steps is None or steps >= LONG
        if steps is None or precision != "bfloat16" or not NARROW < width < 2 * NARROW:
            return False
        saved = SAVED * (input_shape[-1] / 32) ** 2 * steps
        return saved >= 2 * WARM_UP and has_compiler()

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


def has_compiler() -> bool:
    """Return whether torch can compile for a processor: with a C++ compiler and Python's headers.

    On Linux alone, where it was seen to work.
    """
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return (
        sys.platform == "linux"
        and shutil.which(os.environ.get("CXX", "g++")) is not None
        and headers.exists()
    )


def cores() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
