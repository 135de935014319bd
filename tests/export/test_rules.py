"""Every rule that predicts, exported in every format, against `predict` on 1,000 images."""

from pathlib import Path

import pytest

from sterad import load_exported
from tests.export.scaffold import RULES, check_equal, fitted, own_encoder, thousand_images

QUICK = ("nearest-mean", "head-own-module")
"""Rules that are traced in the quick suite: an export to ONNX takes a second or two."""


@pytest.mark.parametrize("rule", RULES)
def test_weights_and_card_predict_as_the_classifier(rule: str, tmp_path: Path) -> None:
    path = fitted(rule).export(tmp_path / "model.safetensors")
    exported = load_exported(path, **own_encoder(rule))
    check_equal(exported, fitted(rule), thousand_images())


@pytest.mark.parametrize(
    "rule", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in RULES]
)
def test_onnx_predicts_as_the_classifier(rule: str, tmp_path: Path) -> None:
    exported = load_exported(fitted(rule).export(tmp_path / "model.onnx"), threads=1)
    check_equal(exported, fitted(rule), thousand_images())
    for count in (1, 37):
        check_equal(exported, fitted(rule), thousand_images()[:count])


@pytest.mark.parametrize(
    "rule", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in RULES]
)
def test_torch_programs_predict_as_the_classifier(rule: str, tmp_path: Path) -> None:
    exported = load_exported(fitted(rule).export(tmp_path / "model.pt2"), trusted=True)
    for count in (1, 37, 1000):
        check_equal(exported, fitted(rule), thousand_images()[:count])
