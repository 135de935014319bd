"""A race: contenders that are processes of their own take short turns at the same work.

So that whatever else this machine does, it does to all, and each process has the allocator, threads
and libraries that it is used to. A contender is a script in contenders/, see its work.py.
"""

import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sterad.threads import WAIT_POLICY

HERE = Path(__file__).resolve().parent
HEADER = "| network | | ms a step | quartiles | sterad takes |\n|---|---|---|---|---|"


class SilentError(Exception):
    """A contender that does not answer, with the last words that it said."""


@dataclass
class Contender:
    """A process that takes steps when told to, and the milliseconds of a step in each turn."""

    name: str
    command: list[str]
    environment: dict[str, str]
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as it runs
        self.process = subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
        )

    def hear(self) -> str:
        """Return the next line that it says."""
        assert self.process.stdout is not None
        if line := self.process.stdout.readline():
            return line
        self.complaints.seek(0)
        last = (self.complaints.read().strip().splitlines() or [""])[-1]
        raise SilentError(f"ended with code {self.process.wait()}, {last}")

    def turn(self, steps: int, counts: bool) -> None:
        """Let it take `steps` steps, and note how long they took if the turn counts."""
        print(steps, file=self.process.stdin, flush=True)
        for times, said in zip((self.wall, self.processor), self.hear().split(), strict=True):
            times += [1000 * float(said) / steps] * counts


def race(
    network: str, threads: int, commands: dict[str, list[str]], steps: int, rounds: int
) -> dict[str, float]:
    """Let the contenders take turns, print their lines, and return the first's share of each."""
    environment = os.environ | {
        "PYTHONPATH": str(HERE.parent / "src"),
        "OMP_NUM_THREADS": str(threads),
    }
    racing: list[Contender] = []
    for name, (python, script, *more) in commands.items():
        arguments = [str(HERE / "contenders" / script), network, str(threads), *more]
        try:
            # ours is set up as the command line does it, the others as torch does
            set_up = environment | (WAIT_POLICY if script == "ours.py" else {})
            racing.append(Contender(name, [python, *arguments], set_up))
        except OSError as error:
            refuse(network, name, error)
    for number in range(-1, rounds):  # the first turn warms up
        for contender in list(racing):
            try:
                contender.turn(steps, counts=number >= 0)
            except (SilentError, OSError) as error:
                refuse(network, contender.name, error)
                racing.remove(contender)
    shares = {}
    for contender in racing:
        contender.process.communicate()
        shares[contender.name] = share(threads, contender, racing[0])
        print(line(network, threads, contender, racing[0]), flush=True)
    return shares


def refuse(network: str, name: str, error: Exception) -> None:
    """Print the line of a contender that did not get to the end."""
    print(f"| {network} | {name} | does not run: {error} | | |", flush=True)


def times(threads: int, contender: Contender) -> list[float]:
    """Return milliseconds of steps: of the processor for one thread, else by the wall."""
    return contender.processor if threads == 1 else contender.wall


def share(threads: int, contender: Contender, first: Contender) -> float:
    """Return the time of the first over that of a contender, in turns that are neighbors."""
    pairs = zip(times(threads, contender), times(threads, first), strict=True)
    return statistics.median(mine / time for time, mine in pairs)


def written(milliseconds: float) -> str:
    """Return milliseconds with three digits, or all of them before the point."""
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def line(network: str, threads: int, contender: Contender, first: Contender) -> str:
    """Return a contender's line of the table."""
    low, median, high = statistics.quantiles(times(threads, contender), n=4)
    beside = contender is not first and first.name == "sterad"
    cells = (
        f"{network}, {threads} thread{'s' * (threads > 1)}",
        contender.name,
        written(median),
        f"{written(low)} to {written(high)}",
        f"{share(threads, contender, first):.2f} of it" if beside else "",
    )
    return f"| {' | '.join(cells)} |"
