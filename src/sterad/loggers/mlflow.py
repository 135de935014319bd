"""MLflow: a SQLite database in the folder of all runs, or MLFLOW_TRACKING_URI.

mlflow ui --backend-store-uri sqlite:///runs/mlflow.db
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from filelock import FileLock

from sterad.loggers.logger import LOGGERS, event_scalars
from sterad.optional_imports import require_extra

RUN_TAG = "sterad.run"
DEFAULT_EXPERIMENT = "0"
"""The id of the experiment that every MLflow store has."""


@LOGGERS.register("mlflow")
class MLflow:
    """Logs to an MLflow run that is tagged with the run's id; a resumed run continues it."""

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Import the library; nothing is written yet."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        # First, because mlflow imported without it has no SQLite store; mlflow-skinny lacks it.
        require_extra("sqlalchemy", "mlflow")
        self.mlflow = require_extra("mlflow", "mlflow")
        self.runs_folder = folder.parent.resolve()
        default = f"sqlite:///{self.runs_folder / 'mlflow.db'}"
        self.store = os.environ.get("MLFLOW_TRACKING_URI", default)
        self.run, self.config = run, config

    def __enter__(self) -> Self:
        """Create an MLflow run, or open the one that an earlier process has created."""
        # The first process creates the tables of a new database; the others wait for it.
        with FileLock(self.runs_folder / ".mlflow.lock"):
            self.client = self.mlflow.MlflowClient(self.store)
            is_this_run = f"tags.`{RUN_TAG}` = '{self.run}'"
            found = self.client.search_runs([DEFAULT_EXPERIMENT], is_this_run)
        mlflow_run = found[0] if found else self._create_run()
        self.run_id = mlflow_run.info.run_id
        self.client.update_run(self.run_id, "RUNNING")
        return self

    def _create_run(self) -> Any:
        created = self.client.create_run(
            DEFAULT_EXPERIMENT, run_name=self.run, tags={RUN_TAG: self.run}
        )
        for name, value in _flatten(self.config).items():
            self.client.log_param(created.info.run_id, name, value)
        return created

    def emit(self, event: Mapping[str, Any]) -> None:
        """Log the scalars of the event at its step."""
        now = int(time.time() * 1000)
        metric = self.mlflow.entities.Metric
        metrics = [
            metric(name, value, now, event["step"]) for name, value in event_scalars(event).items()
        ]
        if metrics:
            self.client.log_batch(self.run_id, metrics=metrics)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Mark the run as finished or failed."""
        self.client.set_terminated(self.run_id, "FINISHED" if kind is None else "FAILED")


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        inner = _flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
        flat |= {f"{prefix}{key}": item for key, item in inner.items()}
    return flat
