"""Exports that are refused, and damaged or hostile files: a sentence each."""

import dataclasses
import hashlib
import logging
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from sterad import OnlineClassifier, load_exported
from sterad.errors import SteradError
from sterad.export.card import Card, card_path
from sterad.export.from_learner import log_density_layer
from sterad.sphere import AngularGaussian, fast_log_kernel
from tests.export.scaffold import Backbone, check_equal, digits, fitted, thousand_images


class Branching(Backbone):
    """An encoder whose operations depend on values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = super().forward(x)
        return h * 2 if h.sum() > 0 else h


def test_an_encoder_that_cannot_be_traced(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    classifier = OnlineClassifier("er", memory=10, encoder=Branching()).partial_fit(*digits())
    for ending in ("onnx", "pt2"):
        with pytest.raises(
            SteradError, match=r"encoder Branching cannot be traced .* torch\.where"
        ):
            classifier.export(tmp_path / f"model.{ending}")
    assert capfd.readouterr().err == ""
    assert not [one for one in caplog.records if one.levelno > logging.DEBUG]
    assert logging.getLogger("torch").level < logging.CRITICAL
    path = classifier.export(tmp_path / "model.safetensors")
    check_equal(load_exported(path, encoder=Branching), classifier, thousand_images()[:50])
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name, card_path(path).name]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("m.onnx", {"opset": 7}, "opset 7 is not supported: give a number from 18 to 23"),
        ("m.onnx", {"opset": 99}, "opset 99 is not supported"),
        ("m.onnx", {"opset": "18"}, "opset '18' is not supported"),
        ("m.pt2", {"opset": 18}, "opset 18 has no effect on pt2: leave it out"),
        ("m.bin", {}, r"'m.bin' has no ending of a known format: give .* \.onnx, \.pt2, \.safet"),
        ("m", {"format": "onnx"}, "'m' has no ending"),
        ("m.onnx", {"format": "zip"}, "unknown format 'zip': give one of onnx, pt2, safetensors"),
        ("m.onnx", {"format": "pt2"}, r"ends with \.onnx and format is pt2: leave out the format"),
        ("m.onnx", {"input_dtype": "int8"}, "unknown input_dtype 'int8': give one of float32"),
        ("none/m.safetensors", {}, "cannot write .*No such file or directory"),
    ],
)
def test_wrong_arguments(name: str, arguments: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=message):
        fitted("head").export(tmp_path / name, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_law_that_is_too_steep_for_a_polynomial() -> None:
    kernel = fast_log_kernel(AngularGaussian, 1e4, 3)
    with pytest.raises(SteradError, match=r"AngularGaussian with concentration 1e\+04 in 3 dim"):
        log_density_layer(kernel)
    cosines = torch.linspace(-1, 1, 1000, dtype=torch.float64)
    for concentration in (0.1, 3.0, 30.0):
        kernel = fast_log_kernel(AngularGaussian, concentration, 8)
        density, expected = log_density_layer(kernel)(cosines), kernel(cosines)
        atol = 1e-11 * float(expected.abs().max())  # coefficients are dropped below 1e-12 of it
        torch.testing.assert_close(density, expected, rtol=0, atol=atol)


def test_an_unfitted_classifier_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="nothing has been learned yet: call partial_fit first"):
        OnlineClassifier().export(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("ending", "package"),
    [("onnx", "onnx"), ("onnx", "onnxscript"), ("safetensors", "safetensors")],
)
def test_a_missing_package(
    ending: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (package, f"{package}.torch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        SteradError, match=r"export needs a library .*pip install 'sterad\[export\]"
    ):
        fitted("head").export(tmp_path / f"model.{ending}")


def test_onnxruntime_is_missing(onnx_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SteradError, match=r"onnx' cannot be used, export needs a library that"):
        load_exported(onnx_file)


def flip_bit(content: bytes) -> bytes:
    return content[:300] + bytes([content[300] ^ 1]) + content[301:]


@pytest.mark.parametrize("damage", [flip_bit, lambda c: c[:-1], lambda c: b"", lambda c: c + b"\0"])
def test_a_damaged_file(damage: Callable[[bytes], bytes], onnx_file: Path, tmp_path: Path) -> None:
    weights = fitted("head").export(tmp_path / "a.safetensors")
    program = fitted("head").export(tmp_path / "b.pt2")
    (tmp_path / "c.onnx").write_bytes(onnx_file.read_bytes())
    for file in (weights, card_path(weights), program, card_path(program), tmp_path / "c.onnx"):
        content = file.read_bytes()
        file.write_bytes(damage(content))
        model = file.with_suffix("") if file.suffix == ".json" else file
        with pytest.raises(SteradError, match=rf"{file.name}.*export the classifier again"):
            load_exported(model, trusted=True)
        file.write_bytes(content)
    assert load_exported(program, trusted=True).card.method == "er"


def test_a_file_that_was_changed_by_another_tool(onnx_file: Path, tmp_path: Path) -> None:
    onnx.save(onnx.load(onnx_file), tmp_path / "same.onnx")
    model = onnx.load(onnx_file)
    model.producer_name = "other"
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(SteradError, match=r"was changed after the export|not match its SHA-256"):
        load_exported(tmp_path / "other.onnx")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("none.onnx", {}, r"there is no file .*none.onnx'"),
        ("model.txt", {}, r"model.txt' has no ending of an exported classifier"),
        ("model.safetensors", {"encoder": Backbone}, "given encoder Backbone does not take the we"),
    ],
)
def test_wrong_files(name: str, arguments: Any, message: str, weights_file: Path) -> None:
    with pytest.raises(SteradError, match=message):
        load_exported(weights_file.with_name(name), **arguments)


def test_weights_need_their_card_and_their_encoder(weights_file: Path, tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"shape \(1, 9, 9\) and the exported classifier takes"):
        load_exported(weights_file).predict(np.zeros((2, 9, 9)))
    card_path(weights_file).unlink()
    with pytest.raises(SteradError, match=r"card 'model.safetensors.json' is missing: keep both"):
        load_exported(weights_file)
    own = fitted("head-own-module").export(tmp_path / "own.safetensors")
    with pytest.raises(SteradError, match=r"Backbone is not one of sterad's: .* encoder=\.\.\."):
        load_exported(own)


def test_a_card_of_another_version(weights_file: Path) -> None:
    file = card_path(weights_file)
    text = file.read_text().replace('"schema": 1', '"schema": 2')
    with pytest.raises(ValueError, match="its card does not match its SHA-256"):
        Card.from_json(text)
    assert Card.from_json(file.read_text()).to_json() == file.read_text()


def test_programs_need_trust_and_are_never_unpickled(tmp_path: Path) -> None:
    path = fitted("head").export(tmp_path / "model.pt2")
    with pytest.raises(SteradError, match=r"torch evaluates expressions .* trusted=True"):
        load_exported(path)
    for name in ("data/constants/model.pt", "data/sample_inputs/model.pt"):
        path = fitted("head").export(tmp_path / "model.pt2")
        add_pickle(path, name)
        with pytest.raises(SteradError, match=r"model.pt2' is damaged or was written by something"):
            load_exported(path, trusted=True)
        assert not (tmp_path / "ran").exists()


class Touch:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def add_pickle(path: Path, name: str) -> None:
    """Write an archive again with a pickle of torch as a member, and its card with the new hash."""
    card = Card.from_json(card_path(path).read_text())
    torch.save(Touch(path.with_name("ran")), path.with_name("pickled"))
    with zipfile.ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    top = next(iter(members)).partition("/")[0]
    members[f"{top}/{name}"] = path.with_name("pickled").read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    card_path(path).write_text(dataclasses.replace(card, weights_sha256=digest).to_json())
