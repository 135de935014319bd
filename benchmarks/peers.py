"""The time of a step of experience replay: sterad, a plain loop and avalanche.

python benchmarks/peers.py [--venv DIR] [--rounds N] [--threads N]
    [--networks linear ResNet-18/20 ResNet-18]

Random images of CIFAR's size, 100 classes, stream batches of 10, memory batches of 64, a reservoir
of 1,000, a random crop with 4 pixels of padding and a flip per image, SGD with momentum. Each
implementation is a process, see implementations/; their steps are interleaved, so that other load
slows all alike. The linear network is one layer on the pixels with one thread, which shows mostly
overhead. The ResNets have two threads unless --threads is given. One thread is timed in CPU time,
several in wall time. sterad uses its default memory format and precision (the variable PRECISION
overrides the latter), the others torch's. Avalanche is installed once by pip into an environment in
DIR; if that fails, the table has a note.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from interleaved import HEADER, ImplementationError, compare

TORCH = "torch==2.13.0"
"""Part of each command, because pip would otherwise install another torch with CUDA."""
NETWORKS = {"linear": (1, 20, 60), "ResNet-18/20": (2, 2, 15), "ResNet-18": (2, 1, 7)}
"""Threads, steps per round and number of rounds."""


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=Path, default=Path("~/.cache/sterad/peers").expanduser())
    parser.add_argument("--rounds", type=int, help="number of timing rounds")
    parser.add_argument(
        "--threads", type=int, help="of all networks (default: 1 of linear, 2 of the ResNets)"
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    args = parser.parse_args()
    avalanche, version = args.venv / "bin" / "python", "avalanche"
    try:
        version = f"avalanche {prepare_environment(args.venv)}"
    except (ImplementationError, OSError) as error:
        print(f"avalanche cannot be installed: {error}\n", file=sys.stderr)
    print(HEADER)
    for network in args.networks:
        commands = {
            "sterad": [sys.executable, "sterad_step.py", "er"],
            "plain loop": [sys.executable, "plain_step.py"],
            version: [str(avalanche), "avalanche_step.py", "round"],
        }
        if network == "linear":
            commands[f"{version}, one experience per batch"] = [*commands[version][:2], "online"]
        threads, steps, rounds = NETWORKS[network]
        compare(network, args.threads or threads, commands, steps, args.rounds or rounds)
    return 0


def prepare_environment(venv: Path) -> str:
    """Create the environment if it does not exist, and return the version of avalanche."""
    python = str(venv / "bin" / "python")
    print_version = [
        python,
        "-c",
        "from importlib.metadata import version as v; print(v('avalanche-lib'))",
    ]
    if not Path(python).exists() or subprocess.run(print_version, capture_output=True).returncode:
        print(f"creating an environment for avalanche in {venv}", file=sys.stderr)
        install = [python, "-m", "pip", "install", "-q", TORCH]
        for command in ([sys.executable, "-m", "venv", venv], install, [*install, "avalanche-lib"]):
            if subprocess.run(command, stdout=sys.stderr).returncode:
                raise ImplementationError(f"{' '.join(map(str, command))} failed")
    return subprocess.run(print_version, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
