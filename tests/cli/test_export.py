"""`sterad export` of saved classifiers."""

from pathlib import Path

import numpy as np
import pytest
from torch import nn

from sterad import OnlineClassifier, load_exported
from sterad.cli import main

X = np.eye(4, dtype=np.float32).repeat(3, axis=0)
Y = np.arange(12) // 3


def test_a_saved_classifier_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classifier = OnlineClassifier("agd-fd", memory=8, views=1, width=2, projection=8, threads=1)
    classifier.partial_fit(X, Y).save(tmp_path / "classifier.pt")
    target = tmp_path / "model.safetensors"
    assert main(["export", str(tmp_path / "classifier.pt"), str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    expected = classifier.consolidate().predict(X)
    assert load_exported(target).predict(X).tolist() == expected.tolist()


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, model = str(tmp_path / "classifier.pt"), str(tmp_path / "model.onnx")
    OnlineClassifier("er", memory=4, encoder=nn.Linear(4, 3)).partial_fit(X, Y).save(saved)
    for words, message in [
        ([saved, model], "made with an object as encoder, which a file cannot contain"),
        ([saved], "sterad export needs a MODEL: see `sterad export --help`"),
        ([model, saved], "there is no file"),
        ([saved, model, "--input-dtype", "int8"], "--input-dtype"),
    ]:
        assert main(["export", *words]) == 2
        assert message in capsys.readouterr().err
