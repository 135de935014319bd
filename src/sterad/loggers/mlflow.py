"""Events for MLflow: a database beside the runs unless MLFLOW_TRACKING_URI says otherwise.

mlflow ui --backend-store-uri sqlite:///runs/mlflow.db
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from filelock import FileLock

from sterad.extras import require_extra
from sterad.loggers.logger import LOGGERS
from sterad.loggers.numbers import numbers

TAG = "sterad.run"
DEFAULT = "0"
"""The experiment that every store has."""


@LOGGERS.register("mlflow")
class MLflow:
    """A run tagged with the id, which a continued run continues."""

    def __init__(self, run: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Find the library; nothing is written yet."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        self.mlflow = require_extra("mlflow", "mlflow")
        require_extra("sqlalchemy", "mlflow")  # the small mlflow comes without it
        self.beside = folder.parent.resolve()
        self.store = os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{self.beside / 'mlflow.db'}")
        self.run, self.config = run, config

    def __enter__(self) -> Self:
        """Begin a run, or find the one that an earlier process began."""
        with FileLock(self.beside / ".mlflow.lock"):  # the first process creates the tables
            self.client = self.mlflow.MlflowClient(self.store)
            found = self.client.search_runs([DEFAULT], f"tags.`{TAG}` = '{self.run}'")
        begun = found[0] if found else self._begin()
        self.opened = begun.info.run_id
        self.client.update_run(self.opened, "RUNNING")
        return self

    def _begin(self) -> Any:
        begun = self.client.create_run(DEFAULT, run_name=self.run, tags={TAG: self.run})
        for name, value in _flat(self.config).items():
            self.client.log_param(begun.info.run_id, name, value)
        return begun

    def emit(self, event: Mapping[str, Any]) -> None:
        """Log the event's numbers at its step."""
        now = int(time.time() * 1000)
        made = self.mlflow.entities.Metric
        metrics = [made(name, value, now, event["step"]) for name, value in numbers(event).items()]
        if metrics:
            self.client.log_batch(self.opened, metrics=metrics)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the run, as failed where it failed."""
        self.client.set_terminated(self.opened, "FINISHED" if kind is None else "FAILED")


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        inner = _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
        flat |= {f"{prefix}{key}": item for key, item in inner.items()}
    return flat
