"""The progress of a run: a bar on a terminal, lines of text elsewhere."""

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_logger(title: str) -> "ProgressBar | ProgressLines":
    """Return a bar if standard error is a terminal, otherwise lines of text."""
    return ProgressBar(title) if sys.stderr.isatty() else ProgressLines(title)


class ProgressBar:
    """A rich progress bar with steps per second, time left, loss and last accuracy."""

    def __init__(self, title: str) -> None:
        """Set the title of the bar."""
        self.title = title
        self.progress: Progress | None = None

    def __enter__(self) -> Self:
        """Draw an empty bar."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("accuracy {task.fields[accuracy]}"),
            console=Console(stderr=True),
        )
        self.progress.start()
        self.task = self.progress.add_task(self.title, total=None, rate="", loss="-", accuracy="-")
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Update the bar."""
        if self.progress is None:
            return
        if event["event"] == "progress":
            loss = "-" if event["loss"] is None else f"{event['loss']:.4g}"
            self.progress.update(
                self.task, completed=event["step"], total=event["steps"], loss=loss
            )
            task = self.progress.tasks[self.task]
            if speed := task.finished_speed or task.speed:
                self.progress.update(self.task, rate=f"{speed:.1f} steps/s")
        elif event["event"] == "evaluation":
            self.progress.update(self.task, accuracy=f"{event['accuracy']:.2%}")

    def __exit__(self, *_: object) -> None:
        """Stop updating; the last state stays on the terminal."""
        if self.progress is not None:
            self.progress.stop()


class ProgressLines:
    """Lines of text, for files and pipes."""

    def __init__(self, title: str, stream: TextIO | None = None, every: float = 5.0) -> None:
        """Print to `stream` (default: stderr), progress at most once in `every` seconds."""
        self.title, self.stream, self.every = title, stream or sys.stderr, every
        self.started = self.last = time.monotonic()
        self.first_step: int | None = None

    def __enter__(self) -> Self:
        """Return itself; there is nothing to open."""
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Print every evaluation, and progress from time to time."""
        kind = event["event"]
        if kind == "progress":
            self._print_progress(event)
        elif kind == "evaluation":
            total = event["total_samples"]
            seen = f"{event['samples'] / total:4.0%}" if total else f"{event['samples']:,} images"
            self._print(f"{seen} seen, {event['seen']} classes, accuracy {event['accuracy']:.2%}")
        elif kind == "resume":
            self._print(f"continues from step {event['step']}")

    def _print_progress(self, event: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if self.first_step is None:
            self.first_step = event["step"] - 1
        if now - self.last >= self.every:
            self.last = now
            rate = (event["step"] - self.first_step) / (now - self.started)
            total, left = "", ""
            if event["steps"] is not None:  # a live feed has no known end
                total = f" of {event['steps']}"
                left = f", {(event['steps'] - event['step']) / rate:.0f} s left"
            loss = "" if event["loss"] is None else f", loss {event['loss']:.4g}"
            self._print(f"step {event['step']}{total}, {rate:.1f} steps/s{left}{loss}")

    def _print(self, text: str) -> None:
        print(f"{self.title}: {text}", file=self.stream, flush=True)

    def __exit__(self, *_: object) -> None:
        """Do nothing; there is nothing to close."""
