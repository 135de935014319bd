"""The time of a step of AGD-FD: sterad, and the same step built from kornia and plain torch.

python benchmarks/whole_step.py [--rounds N] [--networks ResNet-18/20 ResNet-18]

Random images of CIFAR's size, 100 classes, 10 from the stream and 64 from memory, five views and
the images themselves, Adam. The other step, implementations/kornia_step.py, makes views with
kornia, runs the passes one after the other in torch's default memory format, and computes the loss
from a series in double precision. Wall time with two threads. The exit code is 1 if the ratio is
above the limit.
"""

import argparse
import sys

from interleaved import HEADER, compare

LIMITS = {"ResNet-18/20": (1 / 1.7, 15), "ResNet-18": (1 / 1.25, 5)}
"""The maximum time of sterad over that of the other step, and the number of rounds."""


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="number of timing rounds")
    parser.add_argument("--networks", nargs="+", choices=LIMITS, default=list(LIMITS))
    args, missed = parser.parse_args(), False
    print(HEADER)
    for network in args.networks:
        limit, rounds = LIMITS[network]
        commands = {
            "sterad": [sys.executable, "sterad_step.py", "agd-fd"],
            "kornia and torch": [sys.executable, "kornia_step.py"],
        }
        shares = compare(network, 2, commands, 1, args.rounds or rounds)
        if not shares.get("kornia and torch", 2.0) <= limit:
            print(f"{network}: the limit is {limit:.2f}  MISSED")
            missed = True
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
