"""Models of timm, torchvision and transformers: stand-ins of the same interface, and a real one."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import EncoderOptions, make_encoder
from sterad.encoders.own_encoder import OwnEncoder
from sterad.errors import SteradError

MEAN, STD = (0.48, 0.45, 0.41), (0.22, 0.23, 0.24)


class Classifier(nn.Module):
    """A classifier whose last layer has the name of torchvision's models."""

    def __init__(self, name: str, classes: int = 7) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        last = nn.Sequential(nn.Dropout(0.1), nn.Linear(6, classes))
        self.add_module(name, last if name == "classifier" else nn.Linear(6, classes))
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[1:] == (3, 20, 20), "the size of the model's own data config"
        out: Tensor = self.get_submodule(self.name)(self.body(x))
        return out


def install(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    for name, values in modules.items():
        module = ModuleType(name.replace("_", "."))
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, module.__name__, module)


def make(name: str, **options: Any) -> OwnEncoder:
    encoder = make_encoder(name, (3, 8, 8), 4, EncoderOptions(**options))
    assert isinstance(encoder, OwnEncoder)
    assert encoder(torch.rand(2, 3, 8, 8)).shape == (2, encoder.features)
    return encoder


def assert_format(encoder: OwnEncoder) -> None:
    assert encoder.inputs.size == (20, 20)
    assert encoder.inputs.mean.flatten().tolist() == pytest.approx(MEAN)
    assert encoder.inputs.std.flatten().tolist() == pytest.approx(STD)


def test_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def create_model(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        calls.append((name, pretrained, num_classes))
        model = Classifier("fc")
        model.fc = nn.Identity()
        return model

    config = {"input_size": (3, 20, 20), "mean": MEAN, "std": STD, "crop_pct": 0.9}
    install(
        monkeypatch,
        timm={"create_model": create_model},
        timm_data={"resolve_model_data_config": lambda model: config},
    )
    encoder = make("timm:net.a1_in1k", frozen=True)
    assert calls == [("net.a1_in1k", True, 0)]
    assert encoder.features == 6
    assert_format(encoder)
    given = make("timm:net.a1_in1k", input_mean=(0.0, 0.0, 0.0))
    assert given.inputs.mean.flatten().tolist() == [0, 0, 0], "options replace the model's values"


@pytest.mark.parametrize("last", ["fc", "classifier", "head"])
def test_torchvision(last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = SimpleNamespace(crop_size=[20], mean=MEAN, std=STD)
    default = SimpleNamespace(transforms=lambda: preset)
    given = []

    def get_model(name: str, weights: Any) -> nn.Module:
        given.append((name, weights))
        return Classifier(last)

    models = {
        "get_model": get_model,
        "get_model_weights": lambda name: SimpleNamespace(DEFAULT=default),
    }
    install(monkeypatch, torchvision={}, torchvision_models=models)
    encoder = make("torchvision:net")
    assert given == [("net", default)]
    assert encoder.features == 6, "without the classification layer"
    assert_format(encoder)


def test_torchvision_model_without_a_linear_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    models = {
        "get_model": lambda name, weights: nn.Sequential(nn.Conv2d(3, 5, 1)),
        "get_model_weights": lambda name: SimpleNamespace(
            DEFAULT=SimpleNamespace(
                transforms=lambda: SimpleNamespace(crop_size=[20], mean=MEAN, std=STD)
            )
        ),
    }
    install(monkeypatch, torchvision={}, torchvision_models=models)
    with pytest.raises(SteradError, match="torchvision's 'net' has no linear classification layer"):
        make("torchvision:net")


class Transformer(nn.Module):
    """Returns named tensors as the models of transformers do."""

    def __init__(self, pools: bool) -> None:
        super().__init__()
        self.patches, self.pools = nn.Conv2d(3, 6, 5, 5), pools

    def forward(self, pixel_values: Tensor) -> Any:
        maps = self.patches(pixel_values)
        hidden = maps.flatten(2).mT if self.pools else maps
        pooled = hidden[:, 0] if self.pools else None
        return SimpleNamespace(last_hidden_state=hidden, pooler_output=pooled)


@pytest.mark.parametrize("pools", [True, False])
@pytest.mark.parametrize(
    "sizes",
    [
        {"size": {"height": 20, "width": 20}},
        {"size": {"shortest_edge": 30}, "do_center_crop": True}
        | {"crop_size": {"height": 20, "width": 20}},
        {"size": {"shortest_edge": 20}, "do_center_crop": False},
    ],
)
def test_transformers(pools: bool, sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    processor = SimpleNamespace(image_mean=list(MEAN), image_std=list(STD), **sizes)
    package = {
        "AutoModel": SimpleNamespace(from_pretrained=lambda name: Transformer(pools)),
        "AutoImageProcessor": SimpleNamespace(from_pretrained=lambda name: processor),
    }
    install(monkeypatch, transformers=package)
    encoder = make("hf:someone/vit")
    assert encoder.features == 6
    assert_format(encoder)


def test_a_model_that_the_library_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_model(*_: Any, **__: Any) -> nn.Module:
        raise RuntimeError("Unknown model (net)\nmore")

    install(monkeypatch, timm={"create_model": create_model})
    message = (
        r"timm cannot load 'net' \(RuntimeError: Unknown model \(net\)\): give the name of one"
    )
    with pytest.raises(SteradError, match=message):
        make("timm:net")


@pytest.mark.parametrize("package", ["timm", "torchvision", "transformers"])
def test_a_library_that_is_not_installed(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    prefix = "hf" if package == "transformers" else package
    with pytest.raises(SteradError, match=f"needs the package {package}.*: pip install {package}"):
        make(f"{prefix}:net")


@pytest.mark.slow
def test_a_real_model_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=16,
        patch_size=8,
    )
    model = transformers.ViTModel(config)
    model.save_pretrained(tmp_path)
    size = {"height": 16, "width": 16}
    transformers.models.vit.ViTImageProcessorPil(size=size).save_pretrained(tmp_path)
    encoder = make_encoder(f"hf:{tmp_path}", (3, 8, 8), 4).eval()
    x = torch.rand(2, 3, 8, 8)
    resized = nn.functional.interpolate(x, (16, 16), mode="bilinear", antialias=True)
    expected = model.eval()(pixel_values=(resized - 0.5) / 0.5).pooler_output
    assert torch.allclose(encoder(x), expected, atol=1e-6)
