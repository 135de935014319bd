"""The exported files: metadata, inputs, labels, damage, and reading without training code."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from sterad import OnlineClassifier, load_exported
from sterad.errors import SteradError
from sterad.methods import Replay
from sterad.methods.base import prediction_copy
from sterad.methods.er import ER, ERConfig
from tests.export.scaffold import check_equal, digits, fitted, thousand_images

BLOCKED = (
    *("methods", "memory", "streams", "views", "engine", "losses", "evaluation", "results"),
    *("experiments", "estimator", "river", "testing", "bench"),
)
PREDICT_WITHOUT_TRAINING = """
import sys
for name in {blocked!r}:
    sys.modules["sterad." + name] = None  # importing it raises ImportError
import numpy as np
from sterad import load_exported
images = np.load({images!r})
for path in {paths!r}:
    print("".join(load_exported(path, trusted=path.endswith(".pt2")).predict(images)))
"""


@pytest.mark.slow
def test_files_are_read_without_training_code(onnx_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", thousand_images())
    endings = ("pt2", "safetensors")
    others = [fitted("nearest-direction").export(tmp_path / f"model.{one}") for one in endings]
    values = {"blocked": BLOCKED, "images": str(tmp_path / "images.npy")}
    paths = [str(one) for one in (onnx_file, *others)]
    code = PREDICT_WITHOUT_TRAINING.format(**values, paths=paths)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    rules = ("head", "nearest-direction", "nearest-direction")
    expected = ["".join(fitted(rule).predict(thousand_images())) for rule in rules]
    assert result.stdout.split() == expected, result.stderr


def test_an_onnx_file_is_complete_without_sterad(onnx_file: Path) -> None:
    model = onnx.load(onnx_file)
    onnx.checker.check_model(model, full_check=True)
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 20)]
    session = onnxruntime.InferenceSession(onnx_file, providers=["CPUExecutionProvider"])
    scores, indices = session.run(["scores", "indices"], {"inputs": thousand_images()})
    card = json.loads(session.get_modelmeta().custom_metadata_map["sterad_card"])
    assert (card["method"], card["input_shape"]) == ("er", [1, 8, 8])
    predicted = np.array(card["labels"])[indices].tolist()
    assert predicted == fitted("head").predict(thousand_images()).tolist()
    assert scores.argmax(axis=1).tolist() == indices.tolist()


def test_files_contain_no_paths_of_this_machine(onnx_file: Path, tmp_path: Path) -> None:
    program = fitted("head").export(tmp_path / "model.pt2")
    for content in (onnx_file.read_bytes(), program.read_bytes()):
        assert b"site-packages" not in content
        assert b".py" not in content


@pytest.mark.parametrize("layout", ["bytes", "floats", "rough floats", "last", "tensor"])
def test_inputs_are_those_of_predict(layout: str, weights_file: Path) -> None:
    images = thousand_images()
    rough = np.random.default_rng(0).random((50, 1, 8, 8))  # no multiples of 1 / 255
    inputs: Any = {
        "bytes": images,
        "floats": images / 255,
        "rough floats": rough,
        "last": np.moveaxis(images, 1, 3),
        "tensor": torch.from_numpy(images),
    }[layout]
    exported = load_exported(weights_file)
    assert exported.predict(inputs).tolist() == fitted("head").predict(inputs).tolist()


def test_the_graph_rounds_images_as_predict_does(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((50, 1, 8, 8), dtype=np.float32)
    program = torch.export.load(fitted("knn").export(tmp_path / "model.pt2"))
    scores, _ = program.module()(torch.from_numpy(images))
    torch.testing.assert_close(scores, fitted("knn")._scores(images)[0], rtol=0, atol=1e-4)


def test_feature_vectors_integers_and_declared_labels(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 5))
    y = np.arange(40) % 3 * 7
    classifier = OnlineClassifier("slda").partial_fit(x, y, classes=[14, 7, 0, 3])
    exported = load_exported(classifier.export(tmp_path / "model.safetensors"))
    check_equal(exported, classifier, x)
    assert exported.classes_.tolist() == [0, 3, 7, 14]
    assert exported.labels_.tolist() == [0, 7, 14]
    assert (exported.predict_proba(x)[:, 1] == 0).all()
    assert exported.predict(x[:0]).shape == (0,)
    with pytest.raises(SteradError, match="uint8 is for images, and the inputs are feature"):
        classifier.export(tmp_path / "model.onnx", input_dtype="uint8")


def test_an_export_is_that_of_predict_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_copy, "REFRESHED_IMAGES", 5)  # otherwise all of this memory
    images, labels = digits()
    options: dict[str, Any] = {"memory": 30, "memory_batch": 5, "views": 1, "threads": 1}
    classifier = OnlineClassifier("agd-fd", encoder="mlp", width=2, **options)
    for start in range(0, 60, 20):
        classifier.partial_fit(images[start : start + 20], labels[start : start + 20])
    rolling = load_exported(classifier.export(tmp_path / "rolling.safetensors"))
    check_equal(rolling, classifier, thousand_images())
    classifier.consolidate()
    exact = load_exported(classifier.export(tmp_path / "exact.safetensors"))
    check_equal(exact, classifier, thousand_images())
    assert not np.array_equal(rolling.scores(images), exact.scores(images))


@dataclass(frozen=True)
class WarmConfig(ERConfig):
    temperature: float = 3.0


class Warm(ER):
    """A user's method with scores of its own."""

    Config = WarmConfig
    config: WarmConfig

    def class_scores(self, outputs: torch.Tensor) -> torch.Tensor:
        return super().class_scores(outputs).tanh() / self.config.temperature


class Odd(Warm):
    """A method whose scores are not those of a graph."""

    def scores(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return super().scores(x)


def test_own_methods_are_traced(tmp_path: Path) -> None:
    options: dict[str, Any] = {"encoder": "mlp", "width": 2, "memory": 10, "threads": 1}
    classifier = OnlineClassifier(Warm, **options).partial_fit(*digits())
    exported = load_exported(classifier.export(tmp_path / "model.pt2"), trusted=True)
    check_equal(exported, classifier, thousand_images())
    with pytest.raises(SteradError, match=r"Warm.class_scores is your own code, .* to \.onnx"):
        classifier.export(tmp_path / "model.safetensors")
    other = OnlineClassifier(Odd, **options).partial_fit(*digits())
    with pytest.raises(SteradError, match=r"Odd has its own scores\(\), which cannot be exported"):
        other.export(tmp_path / "model.onnx")
    assert issubclass(Odd, Replay)
