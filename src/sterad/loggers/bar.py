"""Progress as a bar, for terminals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar:
    """A rich progress bar with rate, time left, loss and last accuracy, for terminals."""

    def __init__(self, title: str) -> None:
        """Name the bar."""
        self.title = title
        self.progress: Progress | None = None

    def __enter__(self) -> Self:
        """Draw an empty bar; rich is imported here, where it is used."""
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
        """Move the bar."""
        if self.progress is None:
            return
        if event["event"] == "progress":
            loss = "-" if event["loss"] is None else f"{event['loss']:.4g}"
            self.progress.update(
                self.task, completed=event["step"], total=event["steps"], loss=loss
            )
            speed = (
                self.progress.tasks[self.task].finished_speed
                or self.progress.tasks[self.task].speed
            )
            if speed:
                self.progress.update(self.task, rate=f"{speed:.1f} steps/s")
        elif event["event"] == "evaluation":
            self.progress.update(self.task, accuracy=f"{event['accuracy']:.2%}")

    def __exit__(self, *_: object) -> None:
        """Leave the bar as it stands."""
        if self.progress is not None:
            self.progress.stop()
