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
import subprocess
import sys
from pathlib import Path

from race import HEADER, SilentError, race

TORCH = "torch==2.13.0"
"""Named in each command: pip would bring another one, with gigabytes of CUDA."""
WORKS = {"linear": (1, 20, 60), "ResNet-18/20": (2, 2, 15), "ResNet-18": (2, 1, 7)}
"""Threads, steps of a turn and turns of each network."""


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
    print(HEADER)
    for network in asked.networks:
        commands = {
            "sterad": [sys.executable, "ours.py", "er"],
            "plain loop": [sys.executable, "plain.py"],
            version: [str(avalanche), "avalanche_peer.py", "turn"],
        }
        if network == "linear":
            commands[f"{version}, an experience a batch"] = [*commands[version][:2], "online"]
        threads, steps, rounds = WORKS[network]
        race(network, threads, commands, steps, asked.rounds or rounds)
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


if __name__ == "__main__":
    sys.exit(main())
