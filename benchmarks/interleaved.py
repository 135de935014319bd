"""Interleaved timing of implementations of the same step, each in a separate process.

In each round every implementation runs a few steps, so that other load slows all alike. Each has
its own allocator, threads and libraries. The scripts are in implementations/, see workload.py.
"""

import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sterad.threads import WAIT_POLICY

HERE = Path(__file__).resolve().parent
HEADER = "| network | | ms per step | quartiles | sterad takes |\n|---|---|---|---|---|"


class ImplementationError(Exception):
    """An implementation has ended early; the message has its last line of output."""


@dataclass
class Implementation:
    """A process that runs steps on request, and the milliseconds per step of each round."""

    name: str
    command: list[str]
    environment: dict[str, str]
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open while it runs
        self.process = subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def read_line(self) -> str:
        """Return the next line of its output."""
        assert self.process.stdout is not None
        if line := self.process.stdout.readline():
            return line
        self.errors.seek(0)
        last = (self.errors.read().strip().splitlines() or [""])[-1]
        raise ImplementationError(f"ended with code {self.process.wait()}, {last}")

    def run_steps(self, steps: int, is_timed: bool) -> None:
        """Request `steps` steps, and store their time if the round is timed."""
        print(steps, file=self.process.stdin, flush=True)
        for times, seconds in zip(
            (self.wall_ms, self.cpu_ms), self.read_line().split(), strict=True
        ):
            times += [1000 * float(seconds) / steps] * is_timed


def compare(
    network: str, threads: int, commands: dict[str, list[str]], steps: int, rounds: int
) -> dict[str, float]:
    """Run the implementations in rounds, print a row each, and return the first time over each."""
    environment = os.environ | {
        "PYTHONPATH": str(HERE.parent / "src"),
        "OMP_NUM_THREADS": str(threads),
    }
    running: list[Implementation] = []
    for name, (python, script, *more) in commands.items():
        arguments = [str(HERE / "implementations" / script), network, str(threads), *more]
        try:
            # Only sterad's command line sets the wait policy; the others use torch's default.
            variables = environment | (WAIT_POLICY if script == "sterad_step.py" else {})
            running.append(Implementation(name, [python, *arguments], variables))
        except OSError as error:
            print_failure(network, name, error)
    for number in range(-1, rounds):  # the first round warms up and is not timed
        for implementation in list(running):
            try:
                implementation.run_steps(steps, is_timed=number >= 0)
            except (ImplementationError, OSError) as error:
                print_failure(network, implementation.name, error)
                running.remove(implementation)
    shares = {}
    for implementation in running:
        implementation.process.communicate()
        shares[implementation.name] = share(threads, implementation, running[0])
        print(table_row(network, threads, implementation, running[0]), flush=True)
    return shares


def print_failure(network: str, name: str, error: Exception) -> None:
    """Print the row of an implementation that has failed."""
    print(f"| {network} | {name} | does not run: {error} | | |", flush=True)


def times(threads: int, implementation: Implementation) -> list[float]:
    """Return milliseconds per step: CPU time for one thread, otherwise wall time."""
    return implementation.cpu_ms if threads == 1 else implementation.wall_ms


def share(threads: int, other: Implementation, first: Implementation) -> float:
    """Return the time of the first over that of another, computed within each round."""
    pairs = zip(times(threads, other), times(threads, first), strict=True)
    return statistics.median(first_ms / ms for ms, first_ms in pairs)


def format_ms(milliseconds: float) -> str:
    """Return milliseconds with three digits, or without decimals."""
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def table_row(network: str, threads: int, other: Implementation, first: Implementation) -> str:
    """Return the row of an implementation."""
    low, median, high = statistics.quantiles(times(threads, other), n=4)
    is_compared = other is not first and first.name == "sterad"
    cells = (
        f"{network}, {threads} thread{'s' * (threads > 1)}",
        other.name,
        format_ms(median),
        f"{format_ms(low)} to {format_ms(high)}",
        f"{share(threads, other, first):.2f} of it" if is_compared else "",
    )
    return f"| {' | '.join(cells)} |"
