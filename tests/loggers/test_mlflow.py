import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.loggers import LOGGERS

CONFIG = {"method": {"name": "er", "lr": 0.1}, "seed": 3}

# mlflow uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")


@pytest.mark.slow
def test_a_run_is_read_back_from_the_database(
    killed: list[Any], resumed: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow because mlflow creates its tables with many migrations."""
    from mlflow import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for events in (killed, resumed):
        with LOGGERS["mlflow"]("mine-s0", tmp_path / "mine-s0", CONFIG) as logger:
            for event in events:
                logger.emit(event)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    (run,) = client.search_runs(["0"])
    assert run.info.run_name == "mine-s0"
    assert run.info.status == "FINISHED"
    assert run.data.params == {"method.name": "er", "method.lr": "0.1", "seed": "3"}
    assert run.data.metrics["accuracy/2"] == 1.0
    history = client.get_metric_history(run.info.run_id, "loss")
    assert [(metric.step, metric.value) for metric in history][-1] == (3, 1.25)
    logger = LOGGERS["mlflow"]("failed-s0", tmp_path / "failed-s0", CONFIG)
    with pytest.raises(SteradError), logger:
        raise SteradError("diverged")
    assert {run.info.status for run in client.search_runs(["0"])} == {"FINISHED", "FAILED"}


@pytest.mark.slow
def test_two_processes_can_create_the_database_at_the_same_time(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sterad.loggers import LOGGERS; "
        "name = sys.argv[1]; logger = LOGGERS['mlflow'](name, Path(name), {}); logger.__enter__()"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, name],
            cwd=tmp_path,
            env={k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
