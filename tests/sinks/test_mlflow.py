from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.sinks import SINKS

CONFIG = {"method": {"name": "er", "lr": 0.1}, "seed": 3}

# mlflow maps its tables with a strategy that SQLAlchemy 2.1 will drop one day.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy")


@pytest.mark.slow
def test_a_run_in_the_database_reads_back(
    killed: list[Any], continued: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow because mlflow makes its tables one migration after another."""
    from mlflow import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for events in (killed, continued):
        with SINKS["mlflow"]("mine-s0", tmp_path / "mine-s0", CONFIG) as sink:
            for event in events:
                sink.emit(event)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    (run,) = client.search_runs(["0"])
    assert run.info.run_name == "mine-s0"
    assert run.info.status == "FINISHED"
    assert run.data.params == {"method.name": "er", "method.lr": "0.1", "seed": "3"}
    assert run.data.metrics["accuracy/2"] == 1.0
    history = client.get_metric_history(run.info.run_id, "loss")
    assert [(one.step, one.value) for one in history][-1] == (3, 1.25)
    sink = SINKS["mlflow"]("failed-s0", tmp_path / "failed-s0", CONFIG)
    with pytest.raises(SteradError), sink:
        raise SteradError("diverged")
    assert {one.info.status for one in client.search_runs(["0"])} == {"FINISHED", "FAILED"}
