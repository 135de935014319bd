"""Weights of an encoder from a file: prefixes of names, and files that do not fit."""

import json
import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import EncoderOptions, make_encoder
from sterad.encoders.own_encoder import OwnEncoder
from sterad.encoders.weights import load_weights, weights_digest
from sterad.errors import SteradError


def make_module() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def save(path: Path, values: Any) -> Path:
    torch.save(values, path)
    return path


def equal(module: nn.Module, other: nn.Module) -> bool:
    states = module.state_dict(), other.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("prefix", ["", "module.", "encoder.", "model.encoder.module."])
@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
def test_prefixes_and_wrappers_are_removed(
    prefix: str, wrapper: str | None, tmp_path: Path
) -> None:
    module, other = make_module(), make_module()
    values: Any = {f"{prefix}{name}": value for name, value in other.state_dict().items()}
    path = save(tmp_path / "weights.pt", values if wrapper is None else {wrapper: values})
    assert not equal(module, other)
    load_weights(module, path)
    assert equal(module, other)


def test_the_encoder_of_a_network_with_a_head_is_found(tmp_path: Path) -> None:
    network = nn.ModuleDict({"encoder": make_module(), "head": nn.Linear(2, 9)})
    encoder = make_encoder(
        make_module(),
        (3,),
        4,
        EncoderOptions(weights=save(tmp_path / "network.pt", network.state_dict())),
    )
    assert isinstance(encoder, OwnEncoder)
    assert equal(encoder.module, network["encoder"])


def test_names_that_do_not_fit_are_in_the_message(tmp_path: Path) -> None:
    values = {f"module.{name}": value for name, value in make_module().state_dict().items()}
    values["module.fc.weight"] = values.pop("module.2.weight")
    message = r"missing are 2\.weight; unexpected are fc\.weight; give a file of the same arch"
    with pytest.raises(SteradError, match=message):
        load_weights(make_module(), save(tmp_path / "other.pt", values))
    path = save(tmp_path / "many.pt", {str(index): torch.ones(1) for index in range(7)})
    with pytest.raises(SteradError, match="unexpected are 0, 1, 2, 3, 4 and 2 more"):
        load_weights(make_module(), path)


def test_other_shapes_are_refused(tmp_path: Path) -> None:
    values = make_module().state_dict() | {"0.weight": torch.ones(4, 5)}
    with pytest.raises(SteradError, match=r"0.weight has the shape \(4, 5\) in .* and \(4, 3\) in"):
        load_weights(make_module(), save(tmp_path / "wide.pt", values))


def test_an_encoder_without_weights_takes_none(tmp_path: Path) -> None:
    path = save(tmp_path / "weights.pt", make_module().state_dict())
    with pytest.raises(SteradError, match=r"the encoder has no weights, and .* leave it out"):
        make_encoder("flatten", (3,), 4, EncoderOptions(weights=path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read .*No such file"),
        (b"no weights", "cannot be read"),
        ([torch.ones(1)], "holds no state dict: write it with torch.save"),
        ({"a": "text"}, "holds no state dict"),
        ({}, "holds no state dict"),
        (make_module(), "cannot be read"),  # a pickled class is not executed
    ],
)
def test_files_that_are_no_weights_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        save(path, content)
    with pytest.raises(SteradError, match=message):
        load_weights(make_module(), path)


def write_safetensors(path: Path, values: dict[str, Tensor]) -> None:
    """Write the documented format: the length of a JSON header, the header, the bytes."""
    header: dict[str, Any] = {}
    content = b""
    for name, value in values.items():
        raw = value.numpy().tobytes()
        kind = {torch.float32: "F32", torch.int64: "I64"}[value.dtype]
        offsets = [len(content), len(content) + len(raw)]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": offsets}
        content += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def test_safetensors(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    module, other, path = make_module(), make_module(), tmp_path / "weights.safetensors"
    write_safetensors(path, dict(other.state_dict()))
    load_weights(module, path)
    assert equal(module, other)


def test_safetensors_are_read_by_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a small module of the interface of the package, which may not be installed."""
    module, other, path = make_module(), make_module(), tmp_path / "weights.safetensors"
    path.write_bytes(b"content")
    package = ModuleType("safetensors.torch")
    package.load_file = lambda file: dict(other.state_dict())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "safetensors", ModuleType("safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", package)
    load_weights(module, path)
    assert equal(module, other)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(SteradError, match=r"needs the package safetensors.*: pip install"):
        load_weights(module, path)


def test_the_digest_depends_on_the_weights_alone(tmp_path: Path) -> None:
    module, other = make_module(), make_module()
    first = weights_digest(save(tmp_path / "first.pt", module.state_dict()))
    assert weights_digest(save(tmp_path / "second.pt", module.state_dict())) == first
    assert weights_digest(save(tmp_path / "second.pt", other.state_dict())) != first
