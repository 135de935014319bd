"""Execution: how a run is computed. It is in the record, but not in the id of a run."""

import ctypes
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import torch

from sterad.encoders import MIN_CHANNELS_LAST_WIDTH
from sterad.errors import SteradError
from sterad.threads import cores, default_threads
from sterad.torch_private import has_bfloat16_units
from sterad.validation import ADVANCED, Range, build

Precision = Literal["float32", "bfloat16", "float16"]
MIN_STEPS_TO_COMPILE_ON_GPU = 2000
"""Steps from which compiling saves more time than it takes on a GPU."""
CPU_COMPILE_SECONDS = 40.0
"""Seconds that compiling takes on a CPU."""
CPU_SECONDS_SAVED_PER_STEP = 0.013
"""Seconds that a compiled step of 74 images of 32 × 32 pixels saves on a CPU, if it saves any."""
MAX_SMALL_IMAGE_SIZE = 16
"""Image size up to which one thread is faster than several, and bfloat16 gains little."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt, from malloc.h."""
MAX_MMAP_THRESHOLD = 32 << 20
"""Bytes; the largest value that glibc accepts, above the largest feature map of 74 images."""
TRIM_THRESHOLD = 1 << 30
"""Free bytes at the end of the heap that are kept."""


@dataclass(frozen=True)
class Execution:
    """How runs are computed; it does not change a run's id, and a resumed run keeps its own."""

    device: str = "cpu"
    """cpu, cuda or mps (default: cuda if available)."""
    threads: Annotated[int, Range(1, 4096)] | None = None
    """CPU threads (default: chosen from image size and cores)."""
    precision: Precision | None = None
    """Precision of the encoder; weights, heads and losses are always float32 (default: the fastest
    that the device supports in hardware)."""
    view_threads: Annotated[int, Range(1, 4096)] | None = field(default=None, metadata=ADVANCED)
    """Number of views that pass the network in parallel, one thread each."""
    memory_format: Literal["channels_last", "contiguous"] = field(
        default="channels_last", metadata=ADVANCED
    )
    """Memory format of the images."""
    compile: bool | None = field(default=None, metadata=ADVANCED)
    """Compile single passes of the encoder (default: if the run is long enough to benefit);
    parallel passes are never compiled."""
    keeps_memory: bool = field(default=True, metadata=ADVANCED)
    """Return freed memory to the system; by default the allocator keeps it for the next step."""

    @classmethod
    def from_options(cls, **values: Any) -> "Execution":
        """Return an execution with these fields, checked on this machine; others are open."""
        made: Execution = build(cls, values)
        if "device" not in values:
            made = replace(made, device="cuda" if torch.cuda.is_available() else "cpu")
        try:
            torch.empty(0, device=made.device)
        except (RuntimeError, AssertionError) as error:
            raise SteradError(
                f"device {made.device!r} is not available here "
                f"({str(error).splitlines()[0]}): use cpu"
            ) from error
        made.check_cores()
        return made

    def check_cores(self) -> None:
        """Refuse more threads than cores, which only slow each other down."""
        for name in ("threads", "view_threads"):
            count = getattr(self, name)
            if count is not None and count > cores():
                raise SteradError(
                    f"{name} {count} is more than the {cores()} cores that this process may use: "
                    f"give 1 to {cores()}"
                )

    def resolve(
        self, input_shape: tuple[int, ...], width: int, steps: int | None = None
    ) -> "Execution":
        """Return the execution with open fields chosen for a network and its inputs.

        steps: batches of the stream, if its length is known.

        Feature maps of small images are so small that synchronization of threads takes longer than
        the work: a step of AGD-FD on digits takes 0.3 s with one thread and 0.5 s with two.
        Parallel views need no synchronization and use all threads.
        """
        threads = 1 if input_shape[-1] <= MAX_SMALL_IMAGE_SIZE else default_threads()
        view_threads = 1 if self.device != "cpu" else self.threads or default_threads()
        precision = self.precision or _precision(self.device, input_shape)
        if (compile := self.compile) is None:
            compile = self._should_compile(precision, input_shape, width, steps)
        return replace(
            self,
            threads=self.threads or threads,
            view_threads=self.view_threads or view_threads,
            precision=precision,
            compile=compile,
        )

    def _should_compile(
        self, precision: str, input_shape: tuple[int, ...], width: int, steps: int | None
    ) -> bool:
        """Return whether compiling saves more time in a run than it takes.

        On a GPU it does in long runs. On a CPU compiled single passes in bfloat16 take 0.88 to 0.91
        of the time if the channels of narrow layers do not fill whole vectors, as with a width of
        20; in float32, or with a width of 16, 32 or more, they take as long as before. There the
        run must save twice the time of compiling; a run of unknown length is not compiled.
        """
        if self.device != "cpu":
            return steps is None or steps >= MIN_STEPS_TO_COMPILE_ON_GPU
        narrow = MIN_CHANNELS_LAST_WIDTH < width < 2 * MIN_CHANNELS_LAST_WIDTH
        if steps is None or precision != "bfloat16" or not narrow:
            return False
        saved = CPU_SECONDS_SAVED_PER_STEP * (input_shape[-1] / 32) ** 2 * steps
        return saved >= 2 * CPU_COMPILE_SECONDS and has_compiler()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the settings of this process, and restore the number of threads at the end."""
        before = torch.get_num_threads()
        self.apply()
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def apply(self) -> None:
        """Apply the settings of this process: threads and allocator."""
        torch.set_num_threads(self.threads or default_threads())
        if self.keeps_memory and self.device == "cpu":
            keep_freed_memory()


def _precision(device: str, input_shape: tuple[int, ...]) -> Precision:
    """Return the fastest precision that a device supports in hardware.

    A CPU with bfloat16 instructions takes 0.5 to 0.65 of the time of float32 for images of 32
    pixels, and 0.9 for 8 pixels, which is not worth the rounding; without them it is 24 times
    slower.
    """
    if torch.device(device).type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    large = len(input_shape) == 3 and input_shape[-1] > MAX_SMALL_IMAGE_SIZE
    return "bfloat16" if device == "cpu" and large and has_bfloat16_units() else "float32"


def has_compiler() -> bool:
    """Return whether torch can compile for the CPU: with a C++ compiler and Python's headers.

    Only Linux is tested.
    """
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return (
        sys.platform == "linux"
        and shutil.which(os.environ.get("CXX", "g++")) is not None
        and headers.exists()
    )


def keep_freed_memory() -> bool:
    """Make glibc keep freed memory for the next step; return whether it accepted the settings.

    glibc returns blocks above a threshold to the system as soon as they are freed. A training step
    frees and allocates the same large blocks again and again, and each time the system has to clear
    their pages. Raising the thresholds avoids that; the bits of a result do not change. All threads
    share one arena, because further arenas return memory whatever the thresholds are.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    settings = (
        (M_ARENA_MAX, 1),
        (M_MMAP_THRESHOLD, MAX_MMAP_THRESHOLD),
        (M_TRIM_THRESHOLD, TRIM_THRESHOLD),
    )
    return all([libc.mallopt(name, value) for name, value in settings])
