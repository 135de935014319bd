"""Task boundaries for methods that want them: announced, or guessed from new classes."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from torch import Tensor

from sterad.errors import SteradError
from sterad.streams import ChangeDetector
from sterad.validation import Range


@dataclass(frozen=True)
class BoundaryConfig:
    """Where a method that wants boundaries takes them from."""

    boundaries: Literal["auto", "announced", "detected"] = "auto"
    """announced by the stream, detected from new classes, or auto (announced if there are any)."""
    detection_lag: Annotated[int, Range(0, 1_000_000)] = 100
    """Number of batches after a detected change in which new classes are not another change."""


class TaskCounter:
    """Counts the tasks behind, from announcements or from a detector, never from both."""

    def __init__(self, config: BoundaryConfig, announced: bool) -> None:
        """Decide; `announced` says whether the stream announces the ends of tasks."""
        if config.boundaries == "announced" and not announced:
            raise SteradError(
                "boundaries=announced on a stream that announces none: use detected or auto"
            )
        listens = announced and config.boundaries != "detected"
        self.detector = None if listens else ChangeDetector(config.detection_lag)
        self.finished = 0
        """Tasks that have ended."""

    def announced(self) -> bool:
        """Hear the end of a task; return whether it counts."""
        counts = self.detector is None
        self.finished += counts
        return counts

    def noticed(self, labels: Tensor) -> bool:
        """See the labels of a batch before it is learned; return whether a new task has begun."""
        if self.detector is None or not self.detector.observe(labels) or self.detector.task < 1:
            return False
        self.finished += 1
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the count and the detector's state."""
        detector = None if self.detector is None else self.detector.state_dict()
        return {"finished": self.finished, "detector": detector}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self.finished = state["finished"]
        if self.detector is not None:
            self.detector.load_state_dict(state["detector"])
