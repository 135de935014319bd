"""Events for Weights & Biases: offline unless WANDB_MODE says otherwise; `wandb sync` uploads."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sterad.extras import require_extra
from sterad.loggers.logger import LOGGERS
from sterad.loggers.numbers import numbers


@LOGGERS.register("wandb")
class WeightsAndBiases:
    """A run of the same id in the folder `wandb` of the run."""

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Find the library; nothing is written yet."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # offline means no call at all
        self.wandb = require_extra("wandb", "wandb")
        self.run, self.folder, self.config = run, folder, config

    def __enter__(self) -> Self:
        """Begin a run; a second one of the same id continues it where they are put together."""
        quiet = self.wandb.Settings(
            silent=True, console="off", disable_git=True, disable_code=True, x_disable_stats=True
        )
        mode = os.environ.get("WANDB_MODE", "offline")
        self.opened = self.wandb.init(
            project=os.environ.get("WANDB_PROJECT", "sterad"),
            id=self.run,
            name=self.run,
            dir=self.folder,
            config=dict(self.config),
            mode=mode,
            resume=None if mode == "offline" else "allow",
            reinit="create_new",
            settings=quiet,
        )
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Log the event's numbers at its step."""
        if named := numbers(event):
            self.opened.log(named | {"seconds": event["seconds"]}, step=event["step"])

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the run, as failed where it failed."""
        self.opened.finish(exit_code=0 if kind is None else 1)
