"""The progress of a run: a bar on a terminal, lines of text elsewhere."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Self, TextIO

from sterad.loggers.logger import Logger


def progress_logger(title: str) -> Logger:
    """Return a bar if standard error is a terminal, otherwise lines of text."""
    return ProgressBar(title) if sys.stderr.isatty() else ProgressLines(title)


class ProgressBar(Logger):
    """A rich progress bar with steps per second, time left, loss and last accuracy."""

    def __init__(self, title: str) -> None:
        self.title = title

    def __enter__(self) -> Self:
        from rich import progress
        from rich.console import Console

        self.progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("loss {task.fields[loss]}"),
            progress.TextColumn("accuracy {task.fields[accuracy]}"),
            console=Console(stderr=True),
        )
        self.progress.start()
        self.task = self.progress.add_task(self.title, total=None, rate="", loss="-", accuracy="-")
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Update the bar."""
        bar, task = self.progress, self.progress.tasks[self.task]
        if event["event"] == "progress":
            loss = "-" if event["loss"] is None else f"{event['loss']:.4g}"
            bar.update(self.task, completed=event["step"], total=event["steps"], loss=loss)
            if speed := task.finished_speed or task.speed:
                bar.update(self.task, rate=f"{speed:.1f} steps/s")
        elif event["event"] == "evaluation":
            bar.update(self.task, accuracy=f"{event['accuracy']:.2%}")

    def __exit__(self, *_: object) -> None:
        self.progress.stop()


class ProgressLines(Logger):
    """Lines of text, for files and pipes."""

    def __init__(self, title: str, stream: TextIO | None = None, every: float = 5.0) -> None:
        """Print to `stream` (default: stderr), progress at most once in `every` seconds."""
        self.title, self.stream, self.every = title, stream or sys.stderr, every
        self.started = self.last = time.monotonic()
        self.first_step: int | None = None

    def emit(self, event: Mapping[str, Any]) -> None:
        """Print every evaluation, and progress from time to time."""
        kind = event["event"]
        if kind in ("start", "resume"):  # loading the data does not count
            self.started, self.first_step = time.monotonic(), event["step"]
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
