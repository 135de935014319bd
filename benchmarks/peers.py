"""How long a step of experience replay takes: sterad, a plain loop and avalanche, side by side.

python benchmarks/peers.py [--venv DIR] [--rounds N] [--networks linear ResNet-18/20 ResNet-18]

Random images of CIFAR's size, 100 classes, stream batches of 10, memory batches of 64, a reservoir
of 1,000, a random crop from 4 pixels of padding and a flip for each image, SGD with momentum. Each
contender is a process, see contenders/. They take short turns, one after the other, so that
whatever else this machine does, it does to all. The linear network is one layer on the pixels with
one thread: what is left is mostly overhead, and it is timed by the processor's clock. The ResNets
have two threads and the clock on the wall; sterad lays their channels last, as it always does, and
the others leave torch's layout, as people do. Avalanche gets an environment in DIR, made once by
pip; where that does not work out, the table says so and does without it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCH = "torch==2.13.0"
"""Named in each command: pip would bring another one, with gigabytes of CUDA."""
WORKS = {"linear": (1, 20, 60), "ResNet-18/20": (2, 2, 15), "ResNet-18": (2, 1, 7)}
"""Threads, steps of a turn and turns of each network."""


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


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=Path, default=Path("~/.cache/sterad/peers").expanduser())
    parser.add_argument("--rounds", type=int, help="turns of each contender")
    parser.add_argument("--networks", nargs="+", choices=WORKS, default=list(WORKS))
    asked = parser.parse_args()
    avalanche, version = asked.venv / "bin" / "python", "avalanche"
    try:
        version = f"avalanche {prepared(asked.venv)}"
    except (SilentError, OSError) as error:
        print(f"avalanche cannot be installed: {error}\n", file=sys.stderr)
    print("| network | | ms a step | quartiles | sterad takes |\n|---|---|---|---|---|")
    for network in asked.networks:
        commands = {
            "sterad": [sys.executable, "ours.py"],
            "plain loop": [sys.executable, "plain.py"],
            version: [str(avalanche), "avalanche_peer.py", "turn"],
        }
        if network == "linear":
            commands[f"{version}, an experience a batch"] = [*commands[version][:2], "online"]
        race(network, commands, asked.rounds or WORKS[network][2])
    return 0


def prepared(venv: Path) -> str:
    """Make the environment, unless it is there, and return avalanche's version."""
    python = str(venv / "bin" / "python")
    ask = [python, "-c", "from importlib.metadata import version as v; print(v('avalanche-lib'))"]
    if not Path(python).exists() or subprocess.run(ask, capture_output=True).returncode:
        print(f"making an environment for avalanche in {venv}", file=sys.stderr)
        install = [python, "-m", "pip", "install", "-q", TORCH]
        for command in ([sys.executable, "-m", "venv", venv], install, [*install, "avalanche-lib"]):
            if subprocess.run(command, stdout=sys.stderr).returncode:
                raise SilentError(f"{' '.join(map(str, command))} failed")
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()


def race(network: str, commands: dict[str, list[str]], rounds: int) -> None:
    """Let the contenders take turns and print their lines."""
    threads, steps, _ = WORKS[network]
    environment = os.environ | {
        "PYTHONPATH": str(HERE.parent / "src"),
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    racing: list[Contender] = []
    for name, (python, script, *more) in commands.items():
        arguments = [str(HERE / "contenders" / script), network, str(threads), *more]
        try:
            racing.append(Contender(name, [python, *arguments], environment))
        except OSError as error:
            refuse(network, name, error)
    for number in range(-1, rounds):  # the first turn warms up
        for contender in list(racing):
            try:
                contender.turn(steps, counts=number >= 0)
            except (SilentError, OSError) as error:
                refuse(network, contender.name, error)
                racing.remove(contender)
    for contender in racing:
        contender.process.communicate()
        print(line(network, threads, contender, racing[0]), flush=True)


def refuse(network: str, name: str, error: Exception) -> None:
    """Print the line of a contender that did not get to the end."""
    print(f"| {network} | {name} | does not run: {error} | | |", flush=True)


def line(network: str, threads: int, contender: Contender, first: Contender) -> str:
    """Return a contender's line of the table, whose ratio compares turns that are neighbours."""
    one = threads == 1
    times, base = (c.processor if one else c.wall for c in (contender, first))
    low, median, high = statistics.quantiles(times, n=4)
    ratio = statistics.median(mine / time for time, mine in zip(times, base, strict=True))
    cells = (
        f"{network}, {threads} thread{'s' * (not one)}",
        contender.name,
        f"{median:.3g}",
        f"{low:.3g} to {high:.3g}",
        f"{ratio:.2f} of it" if first.name == "sterad" else "",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
