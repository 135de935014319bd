"""`sterad report`: from finished runs to tables and one page."""

from pathlib import Path
from typing import Annotated

import tyro

from sterad.report.write import write_report


def report(runs: Annotated[Path, tyro.conf.Positional] = Path("runs")) -> None:
    """Write report.html and report.md from the finished runs under RUNS; print the page's path."""
    print(write_report(runs))


def main(argv: list[str]) -> int:
    """Run the command."""
    tyro.cli(report, args=argv, prog="sterad report")
    return 0
