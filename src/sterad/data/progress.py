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
    show = _bar if sys.stderr.isatty() else _lines
    with show(title, total, unit) as advance:
        yield advance


@contextmanager
def _bar(title: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda more: bar.update(task, advance=more)


@contextmanager
def _lines(title: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    done, printed = 0, time.monotonic()

    def advance(more: int) -> None:
        nonlocal done, printed
        done += more
        if time.monotonic() - printed > LINE_INTERVAL_S:
            printed = time.monotonic()
            of_total = "" if total is None else f" of {total:,}"
            print(f"{title}: {done:,}{of_total} {unit}", file=sys.stderr, flush=True)

    yield advance
