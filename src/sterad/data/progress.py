"""Progress of long jobs: a bar on a terminal, otherwise a line every few seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_INTERVAL_S = 5.0
"""Seconds between lines if stderr is not a terminal; shorter jobs print nothing."""


@contextmanager
def progress(title: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds to the number of finished units (images, bytes)."""
    if not sys.stderr.isatty():
        yield _line_printer(title, total, unit)
        return
    from rich import progress as rich
    from rich.console import Console

    count = rich.DownloadColumn() if unit == "bytes" else rich.MofNCompleteColumn()
    text = rich.TextColumn("{task.description}")
    columns = (text, rich.BarColumn(), count, rich.TimeRemainingColumn())
    with rich.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda more: bar.update(task, advance=more)


def _line_printer(title: str, total: int | None, unit: str) -> Callable[[int], None]:
    done, printed = 0, time.monotonic()

    def advance(more: int) -> None:
        nonlocal done, printed
        done += more
        if time.monotonic() - printed > LINE_INTERVAL_S:
            printed = time.monotonic()
            of_total = "" if total is None else f" of {total:,}"
            print(f"{title}: {done:,}{of_total} {unit}", file=sys.stderr, flush=True)

    return advance
