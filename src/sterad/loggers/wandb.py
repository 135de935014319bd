"""Weights & Biases: offline unless WANDB_MODE is set; `wandb sync` uploads."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sterad.loggers.logger import LOGGERS, event_scalars
from sterad.optional_imports import require_extra


@LOGGERS.register("wandb")
class WeightsAndBiases:
    """Logs to a wandb run of the same id, in the folder `wandb` of the run."""

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Import the library; nothing is written yet."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # no network access when offline
        self.wandb = require_extra("wandb", "wandb")
        self.run, self.folder, self.config = run, folder, config

    def __enter__(self) -> Self:
        """Start a wandb run; `wandb sync` joins runs of the same id."""
        settings = self.wandb.Settings(
            silent=True, console="off", disable_git=True, disable_code=True, x_disable_stats=True
        )
        mode = os.environ.get("WANDB_MODE", "offline")
        self.wandb_run = self.wandb.init(
            project=os.environ.get("WANDB_PROJECT", "sterad"),
            id=self.run,
            name=self.run,
            dir=self.folder,
            config=dict(self.config),
            mode=mode,
            resume=None if mode == "offline" else "allow",
            reinit="create_new",
            settings=settings,
        )
        return self

    def emit(self, event: Mapping[str, Any]) -> None:
        """Log the scalars of the event at its step."""
        if scalars := event_scalars(event):
            self.wandb_run.log(scalars | {"seconds": event["seconds"]}, step=event["step"])

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the wandb run, with exit code 1 after an error."""
        self.wandb_run.finish(exit_code=0 if kind is None else 1)
