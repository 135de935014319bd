"""Events for TensorBoard: `tensorboard --logdir runs` draws all runs under it."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sterad.extras import require_extra
from sterad.loggers.logger import LOGGERS
from sterad.loggers.numbers import numbers


@LOGGERS.register("tensorboard")
class TensorBoard:
    """Curves in the folder `tensorboard` of the run."""

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Find the library; nothing is written yet."""
        self.writes = require_extra("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self.folder, self.config = folder / "tensorboard", config
        self.writer: Any = None

    def __enter__(self) -> Self:
        """Wait for the first event: it says from where on a killed run's curves are void."""
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Write the event's numbers at its step and at the time that it says."""
        if self.writer is None:
            self.started = time.time() - event["seconds"]
            self.writer = self.writes(self.folder, purge_step=event["step"] + 1)
            self.writer.add_text("config", f"```\n{json.dumps(self.config, indent=1)}\n```")
        for name, value in numbers(event).items():
            self.writer.add_scalar(name, value, event["step"], self.started + event["seconds"])
        if event["event"] == "checkpoint":
            self.writer.flush()  # a run that is killed continues from here

    def __exit__(self, *_: object) -> None:
        """Write what is held back."""
        if self.writer is not None:
            self.writer.close()
