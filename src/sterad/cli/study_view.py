"""The view of a study in progress: what runs, what is done, best so far, time left."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from sterad.experiments.launchers import Outcome


class PlainView:
    """A line for each run that ends, for files and pipes."""

    def __init__(self, title: str, total: int, missing: int) -> None:
        """Say how much there is to do."""
        self.title, self.total, self.missing = title, total, missing
        self.done = self.failed = 0
        self.best: tuple[float, str] | None = None
        self.running: dict[str, Mapping[str, Any]] = {}
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        """Say how much there is to do."""
        self.say(f"{self.title}: {self.total} runs, {self.total - self.missing} done before")
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)

    def heard(self, run: str, event: Mapping[str, Any]) -> None:
        """Take an event of a run."""
        self.running[run] = {**self.running.get(run, {}), **event}

    def ended(self, outcome: Outcome) -> None:
        """Take the end of a run."""
        run, record = outcome.job.id, outcome.record
        self.running.pop(run, None)
        self.done += 1
        what = f"failed: {outcome.error}"
        if record is not None:
            accuracy = record.final_average_accuracy
            self.best = max(self.best or (accuracy, run), (accuracy, run))
            what = f"{accuracy:.2%} in {record.seconds:.0f} s"
        else:
            self.failed += 1
        self.say(f"[{self.done}/{self.missing}] {run}: {what}; {self.left()}")

    def left(self) -> str:
        """Return the time that the rest will take at the pace so far."""
        if not self.done:
            return "time left unknown"
        rest = (self.missing - self.done) * (time.monotonic() - self.started) / self.done
        return f"{spoken(rest)} left"


class LiveView(PlainView):
    """A table that is drawn anew in place, for terminals."""

    def __enter__(self) -> Self:
        """Begin to draw."""
        self.live = Live(get_renderable=self.drawn, console=Console(stderr=True))
        self.live.start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        """Leave the last picture."""
        self.live.stop()

    def say(self, text: str) -> None:
        """Print a line above the picture."""
        self.live.console.print(text, highlight=False)

    def drawn(self) -> RenderableType:
        """Return the picture."""
        table = Table(box=None, pad_edge=False)
        for name in ("running", "step", "accuracy so far", "seconds"):
            table.add_column(name)
        for run, event in self.running.items():
            steps = f"{event['step']} of {event['steps'] or '?'}"
            accuracy = f"{event['accuracy']:.2%}" if "accuracy" in event else "-"
            table.add_row(run, steps, accuracy, f"{event['seconds']:.0f}")
        best = "" if self.best is None else f", best so far {self.best[0]:.2%} ({self.best[1]})"
        failed = f", {self.failed} failed" if self.failed else ""
        return Group(table, f"{self.done} of {self.missing} done{failed}{best}, {self.left()}")


def spoken(seconds: float) -> str:
    """Return a time as people say it.

    >>> spoken(45), spoken(600), spoken(9000)
    ('45 s', '10 min', '2.5 h')
    """
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def study_view(title: str, total: int, missing: int) -> PlainView:
    """Return a picture on a terminal and plain lines elsewhere."""
    return (LiveView if sys.stderr.isatty() else PlainView)(title, total, missing)
