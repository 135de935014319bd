"""TensorBoard: `tensorboard --logdir runs` plots all runs in a folder."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sterad.loggers.logger import LOGGERS, event_scalars
from sterad.optional_imports import require_extra


@LOGGERS.register("tensorboard")
class TensorBoard:
    """Writes curves to the folder `tensorboard` of the run."""

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Import the library; nothing is written yet."""
        self.writer_class = require_extra("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self.folder, self.config = folder / "tensorboard", config
        self.writer: Any = None

    def __enter__(self) -> Self:
        """Return itself; the first event opens the writer, because `purge_step` needs its step."""
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Write the scalars of the event at its step and time."""
        if self.writer is None:
            self.started = time.time() - event["seconds"]
            # A killed run may have written later steps than its checkpoint: discard them.
            self.writer = self.writer_class(self.folder, purge_step=event["step"] + 1)
            self.writer.add_text("config", f"```\n{json.dumps(self.config, indent=1)}\n```")
        for name, value in event_scalars(event).items():
            self.writer.add_scalar(name, value, event["step"], self.started + event["seconds"])
        if event["event"] == "checkpoint":
            self.writer.flush()  # a killed run continues from here

    def __exit__(self, *_: object) -> None:
        """Write buffered events."""
        if self.writer is not None:
            self.writer.close()
