"""How long a step of AGD-FD takes: sterad, and the same put together from parts at hand.

python benchmarks/whole_step.py [--rounds N] [--networks ResNet-18/20 ResNet-18]

Random images of CIFAR's size, 100 classes, 10 from the stream and 64 from memory, five views and
the images themselves, Adam. The other step, contenders/parts.py, takes its views from kornia, one
pass after the other, with torch's layout and allocator and the loss from a series in double
precision. Two threads and the clock on the wall. The exit code is 1 where ours takes more than the
limit of the time of the other.
"""

import argparse
import sys

from race import HEADER, race

LIMITS = {"ResNet-18/20": (1 / 1.7, 15), "ResNet-18": (1 / 1.25, 5)}
"""The most that sterad may take of the time of the other, and turns."""


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="turns of each contender")
    parser.add_argument("--networks", nargs="+", choices=LIMITS, default=list(LIMITS))
    asked, missed = parser.parse_args(), False
    print(HEADER)
    for network in asked.networks:
        limit, rounds = LIMITS[network]
        commands = {
            "sterad": [sys.executable, "ours.py", "agd-fd"],
            "from parts": [sys.executable, "parts.py"],
        }
        shares = race(network, 2, commands, 1, asked.rounds or rounds)
        if not shares.get("from parts", 2.0) <= limit:
            print(f"{network}: the limit is {limit:.2f}  MISSED")
            missed = True
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
