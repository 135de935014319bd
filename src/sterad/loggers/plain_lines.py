"""Progress as text, for files and pipes."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Self, TextIO


class PlainLines:
    """A line of text now and then, for files and pipes."""

    def __init__(self, title: str, stream: TextIO | None = None, every: float = 5.0) -> None:
        """Print to `stream` (standard error by default) at most every so many seconds."""
        self.title, self.stream, self.every = title, stream or sys.stderr, every
        self.started = self.last = time.monotonic()
        self.first_step: int | None = None

    def __enter__(self) -> Self:
        """Nothing to open."""
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Print evaluations at once and progress now and then."""
        kind = event["event"]
        if kind == "progress":
            self._progress(event)
        elif kind == "evaluation":
            total = event["total_samples"]
            seen = f"{event['samples'] / total:4.0%}" if total else f"{event['samples']:,} images"
            self._say(f"{seen} seen, {event['seen']} classes, {event['accuracy']:.2%} right")
        elif kind == "resume":
            self._say(f"continues from step {event['step']}")

    def _progress(self, event: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if self.first_step is None:
            self.first_step = event["step"] - 1
        if now - self.last >= self.every:
            self.last = now
            rate = (event["step"] - self.first_step) / (now - self.started)
            of, left = "", ""
            if event["steps"] is not None:  # a feed has no known end
                of = f" of {event['steps']}"
                left = f", {(event['steps'] - event['step']) / rate:.0f} s left"
            loss = "" if event["loss"] is None else f", loss {event['loss']:.4g}"
            self._say(f"step {event['step']}{of}, {rate:.1f} steps/s{left}{loss}")

    def _say(self, text: str) -> None:
        print(f"{self.title}: {text}", file=self.stream, flush=True)

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""
