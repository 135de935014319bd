"""Execution: how a run is computed, not what it is; in the record, but not in the id."""

import os
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
from sterad.engine.allocator import keep_freed_memory
from sterad.errors import SteradError
from sterad.threads import cores, default_threads
from sterad.torch_private import has_bfloat16_units
from sterad.validation import ADVANCED, Range, build

Precision = Literal["float32", "bfloat16", "float16"]
COMPILE_FROM_STEPS = 2000
"""Steps from which on a graphics card earns the time back that compiling takes."""
COMPILE_SECONDS = 40.0
"""Seconds that a processor compiles."""
COMPILE_SAVES_SECONDS = 0.013
"""Seconds that a compiled step of 74 images of 32 × 32 pixels saves there, where it saves any."""
SMALL_SIDE = 16
"""Sides of images up to which one thread is faster than several, and short formats gain little."""


@dataclass(frozen=True)
class Execution:
    """How runs are computed; none of it changes a run's id, and a begun run keeps its own."""

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
    def chosen(cls, **values: Any) -> "Execution":
        """Return what the user has said, checked against this machine; the rest stays open."""
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
        """Refuse more threads than cores: they only wait for each other."""
        for name in ("threads", "view_threads"):
            count = getattr(self, name)
            if count is not None and count > cores():
                raise SteradError(
                    f"{name} {count} is more than the {cores()} cores that this process may use: "
                    f"give 1 to {cores()}"
                )

    def settled(
        self, input_shape: tuple[int, ...], width: int, steps: int | None = None
    ) -> "Execution":
        """Return the execution with all that suits a network of a width and inputs of a shape.

        steps: batches of the stream, if it has an end.

        Maps of small images are so small that threads wait for each other longer than they work:
        a step of AGD-FD on digits takes 0.3 s with one thread and 0.5 s with two. Views side by
        side do not wait for each other: they take all the threads there are.
        """
        usual = 1 if input_shape[-1] <= SMALL_SIDE else default_threads()
        beside = 1 if self.device != "cpu" else self.threads or default_threads()
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
            return steps is None or steps >= COMPILE_FROM_STEPS
        narrow = MIN_CHANNELS_LAST_WIDTH < width < 2 * MIN_CHANNELS_LAST_WIDTH
        if steps is None or precision != "bfloat16" or not narrow:
            return False
        saved = COMPILE_SAVES_SECONDS * (input_shape[-1] / 32) ** 2 * steps
        return saved >= 2 * COMPILE_SECONDS and has_compiler()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Set what torch keeps per process, and restore the number of threads at the end."""
        before = torch.get_num_threads()
        self.apply()
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def apply(self) -> None:
        """Set what torch keeps per process."""
        torch.set_num_threads(self.threads or default_threads())
        if self.keeps_memory and self.device == "cpu":
            keep_freed_memory()


def _precision(device: str, input_shape: tuple[int, ...]) -> Precision:
    """Return the fastest precision that a device has units for.

    A processor with units for bfloat16 takes 0.5 to 0.65 of the time for images of 32 pixels, and
    0.9 for those of 8, which is not worth the rounding; one without is 24 times slower.
    """
    if torch.device(device).type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    large = len(input_shape) == 3 and input_shape[-1] > SMALL_SIDE
    return "bfloat16" if device == "cpu" and large and has_bfloat16_units() else "float32"


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
