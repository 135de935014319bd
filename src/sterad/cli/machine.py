"""Machine: options that say how runs are computed."""

from dataclasses import dataclass

from sterad.experiments.execution import Execution


@dataclass(frozen=True)
class Machine:
    """What this machine does best, unless said; no id changes, and a begun run keeps its own."""

    device: str | None = None
    """cuda where there is one, else cpu."""
    threads: int | None = None
    """Processor threads of a run; as the images ask by default, or its share of the cores."""
    view_threads: int | None = None
    """Views that go through the network side by side, a thread each; 1: one after the other."""
    memory_format: str = "channels_last"
    """How images lie in memory: channels_last or contiguous."""
    precision: str | None = None
    """float32, bfloat16 or float16; what the device has units for by default."""
    compile: bool | None = None
    """--compile lets torch compile single passes of the encoder, --no-compile does not; by default
    it does where a run is so long that it earns the time back."""
    keeps_memory: bool = True
    """Keep freed memory for the next step, where the allocator can."""

    def execution(self) -> Execution:
        """Return it with the rest chosen."""
        return Execution.chosen(
            self.device,
            self.threads,
            self.precision,
            self.compile,
            self.view_threads,
            self.memory_format,
            self.keeps_memory,
        )
