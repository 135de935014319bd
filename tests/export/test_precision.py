"""Classifiers whose encoder is computed in bfloat16, and their float32 export."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sterad import OnlineClassifier, load_exported
from sterad.cli import main
from sterad.errors import SteradError
from sterad.export import from_learner, write
from sterad.export.comparison import PrecisionWarning, encoder_precision, in_float32
from sterad.export.hub import describe
from sterad.streams.batch import to_unit
from tests.export.scaffold import digits, thousand_images

RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "head": ("er", {"encoder": "mlp", "width": 2}),
    "head-teacher": ("er", {"encoder": "mlp", "width": 2, "teacher": "ema"}),
    "nearest-mean": ("agd-fd", {"encoder": "mlp", "width": 2, "views": 1, "projection": 16}),
    "from-scratch": ("gdumb", {"encoder": "mlp", "width": 2, "epochs": 1}),
    "frozen": ("slda", {"encoder": "resnet18", "width": 2}),
    "frozen-head": (
        "er",
        {"encoder": "resnet18", "width": 2, "frozen": True, "augment": "none"},
    ),
}


def in_half(rule: str) -> OnlineClassifier:
    """Return a classifier in bfloat16 that has learned 60 digits."""
    method, arguments = RULES[rule]
    options: dict[str, Any] = {"memory": 30, "threads": 1, "precision": "bfloat16"}
    return OnlineClassifier(method, **options, **arguments).partial_fit(*digits())


@pytest.mark.parametrize("rule", RULES)
def test_an_export_is_that_of_the_classifier_in_float32(rule: str, tmp_path: Path) -> None:
    classifier, images = in_half(rule), thousand_images()
    before = classifier._scores(images)[0]
    with pytest.warns(PrecisionWarning, match=r"encoder in bfloat16 .* precision='float32'") as one:
        path = classifier.export(tmp_path / "model.safetensors")
    assert one[0].filename == __file__
    exported = load_exported(path)
    assert exported.card.precision == "bfloat16"
    assert "in float32 (it learned in bfloat16)" in describe(exported.card, "user/name")
    learner = classifier._state().predictor
    expected = in_float32(learner).scores(to_unit(torch.from_numpy(images)))[0].numpy()
    scores = exported.scores(images)
    tolerance = 1e-4 * max(1, np.abs(expected).max() / 100)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)
    half = before.numpy()
    assert not np.array_equal(expected, half), "bfloat16 is not used"
    assert (exported.predict(images) == classifier.predict(images)).mean() > 0.85
    assert encoder_precision(learner) == "bfloat16"
    assert np.array_equal(classifier._scores(images)[0].numpy(), half), "the classifier changed"


def test_a_wrong_graph_is_refused_in_bfloat16_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = from_learner.build_predictor

    def build_wrong(*arguments: Any) -> Any:
        predictor, columns = build(*arguments)
        weight = next(predictor.encoder.parameters())
        weight.data[0] += 0.01  # below the precision of bfloat16
        return predictor, columns

    monkeypatch.setattr(write, "build_predictor", build_wrong)
    with pytest.raises(SteradError, match="graph of er gives other scores than predict"):
        in_half("head").export(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_pixels_have_no_precision(tmp_path: Path) -> None:
    classifier = OnlineClassifier("slda", precision="bfloat16").partial_fit(*digits())
    path = classifier.export(tmp_path / "model.safetensors")
    assert load_exported(path).card.precision == "float32"


def test_the_command_says_it_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, target = tmp_path / "classifier.pt", tmp_path / "model.safetensors"
    in_half("head").save(saved)
    assert main(["export", str(saved), str(target)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{target}\n"
    assert captured.err.startswith("sterad: the classifier computes its encoder in bfloat16")
    assert captured.err.count("\n") == 1
