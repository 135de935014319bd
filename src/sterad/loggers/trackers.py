"""Loggers that write to experiment trackers: TensorBoard, Weights & Biases, MLflow."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from filelock import FileLock

from sterad.loggers.logger import LOGGERS, Logger, event_scalars
from sterad.optional_imports import require_extra

MLFLOW_RUN_TAG = "sterad.run"
MLFLOW_EXPERIMENT = "0"
"""The id of the experiment that every MLflow store has."""


@LOGGERS.register("tensorboard")
class TensorBoard(Logger):
    """Writes curves to the folder `tensorboard` of the run.

    `tensorboard --logdir runs` plots all runs in a folder.
    """

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        self.writer_class = require_extra("torch.utils.tensorboard", "tracking").SummaryWriter
        self.folder, self.config = folder / "tensorboard", config
        self.writer: Any = None  # the first event opens it, because `purge_step` needs its step

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
        if self.writer is not None:
            self.writer.close()


@LOGGERS.register("wandb")
class WeightsAndBiases(Logger):
    """Logs to a wandb run of the same id, in the folder `wandb` of the run.

    It is offline unless WANDB_MODE is set; `wandb sync` uploads it.
    """

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # no network access when offline
        self.wandb = require_extra("wandb", "tracking")
        self.run, self.folder, self.config = run, folder, config

    def __enter__(self) -> Self:
        settings = self.wandb.Settings(
            silent=True, console="off", disable_git=True, disable_code=True, x_disable_stats=True
        )
        mode = os.environ.get("WANDB_MODE", "offline")
        self.wandb_run = self.wandb.init(
            project=os.environ.get("WANDB_PROJECT", "sterad"),
            id=self.run,  # `wandb sync` joins runs of the same id
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
        self.wandb_run.finish(exit_code=0 if kind is None else 1)


@LOGGERS.register("mlflow")
class MLflow(Logger):
    """Logs to an MLflow run that is tagged with the run's id; a resumed run continues it.

    The store is a SQLite database in the folder of all runs, or MLFLOW_TRACKING_URI:
    `mlflow ui --backend-store-uri sqlite:///runs/mlflow.db`.
    """

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        # First, because mlflow imported without it has no SQLite store; mlflow-skinny lacks it.
        require_extra("sqlalchemy", "tracking")
        self.mlflow = require_extra("mlflow", "tracking")
        self.runs_folder = folder.parent.resolve()
        default = f"sqlite:///{self.runs_folder / 'mlflow.db'}"
        self.store = os.environ.get("MLFLOW_TRACKING_URI", default)
        self.run, self.config = run, config

    def __enter__(self) -> Self:
        # The first process creates the tables of a new database; the others wait for it.
        with FileLock(self.runs_folder / ".mlflow.lock"):
            self.client = self.mlflow.MlflowClient(self.store)
            is_this_run = f"tags.`{MLFLOW_RUN_TAG}` = '{self.run}'"
            found = self.client.search_runs([MLFLOW_EXPERIMENT], is_this_run)
        mlflow_run = found[0] if found else self._create_run()
        self.run_id = mlflow_run.info.run_id
        self.client.update_run(self.run_id, "RUNNING")
        return self

    def _create_run(self) -> Any:
        tags = {MLFLOW_RUN_TAG: self.run}
        created = self.client.create_run(MLFLOW_EXPERIMENT, run_name=self.run, tags=tags)
        for name, value in _flatten(self.config).items():
            self.client.log_param(created.info.run_id, name, value)
        return created

    def emit(self, event: Mapping[str, Any]) -> None:
        """Log the scalars of the event at its step."""
        now_ms, metric = int(time.time() * 1000), self.mlflow.entities.Metric
        scalars = event_scalars(event).items()
        metrics = [metric(name, value, now_ms, event["step"]) for name, value in scalars]
        if metrics:
            self.client.log_batch(self.run_id, metrics=metrics)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.client.set_terminated(self.run_id, "FINISHED" if kind is None else "FAILED")


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        inner = _flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
        flat |= {f"{prefix}{key}": item for key, item in inner.items()}
    return flat
