"""How far a long job has come: a bar on a terminal, elsewhere a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIET_SECONDS = 5.0
"""Seconds between lines; what is quicker says nothing where there is no terminal."""


@contextmanager
def progress(title: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how many more `unit`s (images, bytes) are done."""
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
    done, told = 0, time.monotonic()

    def advance(more: int) -> None:
        nonlocal done, told
        done += more
        if time.monotonic() - told > QUIET_SECONDS:
            told = time.monotonic()
            whole = "" if total is None else f" of {total:,}"
            print(f"{title}: {done:,}{whole} {unit}", file=sys.stderr, flush=True)

    yield advance
