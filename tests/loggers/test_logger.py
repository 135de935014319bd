"""Loggers by name: which there are, and what is said where a library is missing."""

import sys
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.loggers import LOGGERS


def test_the_sinks_that_there_are() -> None:
    assert list(LOGGERS) == ["mlflow", "tensorboard", "wandb"]


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("wandb", "wandb"),
        ("mlflow", "mlflow"),
        ("mlflow", "sqlalchemy"),
        ("tensorboard", "torch.utils.tensorboard"),
    ],
)
def test_a_missing_library_is_a_sentence(
    name: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SteradError, match=rf"pip install 'sterad\[{name}\]'"):
        LOGGERS[name]("mine-s0", tmp_path, {})
    assert list(tmp_path.iterdir()) == []
