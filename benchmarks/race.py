"""A race: contenders in processes of their own take short turns at the same work.

Other load slows all alike, and each process has its own allocator, threads and libraries. A
contender is a script in contenders/, see work.py there.
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


class ContenderError(Exception):
    """A contender has ended early; the message has its last line of output."""


@dataclass
class Contender:
    """A process that takes steps on request, and the milliseconds per step of each turn."""

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
        raise ContenderError(f"ended with code {self.process.wait()}, {last}")

    def take_turn(self, steps: int, is_timed: bool) -> None:
        """Request `steps` steps, and store their time if the turn is timed."""
        print(steps, file=self.process.stdin, flush=True)
        for times, seconds in zip(
            (self.wall_ms, self.cpu_ms), self.read_line().split(), strict=True
        ):
            times += [1000 * float(seconds) / steps] * is_timed


def race(
    network: str, threads: int, commands: dict[str, list[str]], steps: int, rounds: int
) -> dict[str, float]:
    """Run the contenders in turns, print their rows, and return the first's time over each."""
    environment = os.environ | {
        "PYTHONPATH": str(HERE.parent / "src"),
        "OMP_NUM_THREADS": str(threads),
    }
    racing: list[Contender] = []
    for name, (python, script, *more) in commands.items():
        arguments = [str(HERE / "contenders" / script), network, str(threads), *more]
        try:
            # Only sterad's command line sets the wait policy; the others use torch's default.
            variables = environment | (WAIT_POLICY if script == "ours.py" else {})
            racing.append(Contender(name, [python, *arguments], variables))
        except OSError as error:
            print_failure(network, name, error)
    for number in range(-1, rounds):  # the first turn warms up and is not timed
        for contender in list(racing):
            try:
                contender.take_turn(steps, is_timed=number >= 0)
            except (ContenderError, OSError) as error:
                print_failure(network, contender.name, error)
                racing.remove(contender)
    shares = {}
    for contender in racing:
        contender.process.communicate()
        shares[contender.name] = share(threads, contender, racing[0])
        print(table_row(network, threads, contender, racing[0]), flush=True)
    return shares


def print_failure(network: str, name: str, error: Exception) -> None:
    """Print the row of a contender that has failed."""
    print(f"| {network} | {name} | does not run: {error} | | |", flush=True)


def times(threads: int, contender: Contender) -> list[float]:
    """Return milliseconds per step: CPU time for one thread, otherwise wall time."""
    return contender.cpu_ms if threads == 1 else contender.wall_ms


def share(threads: int, contender: Contender, first: Contender) -> float:
    """Return the time of the first over that of a contender, computed within each turn."""
    pairs = zip(times(threads, contender), times(threads, first), strict=True)
    return statistics.median(first_ms / ms for ms, first_ms in pairs)


def format_ms(milliseconds: float) -> str:
    """Return milliseconds with three digits, or without decimals."""
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def table_row(network: str, threads: int, contender: Contender, first: Contender) -> str:
    """Return the row of a contender."""
    low, median, high = statistics.quantiles(times(threads, contender), n=4)
    is_compared = contender is not first and first.name == "sterad"
    cells = (
        f"{network}, {threads} thread{'s' * (threads > 1)}",
        contender.name,
        format_ms(median),
        f"{format_ms(low)} to {format_ms(high)}",
        f"{share(threads, contender, first):.2f} of it" if is_compared else "",
    )
    return f"| {' | '.join(cells)} |"
