"""Modules and functions of users as encoders: feature size, frozen parts, inputs and errors."""

import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import EncoderOptions, make_encoder
from sterad.encoders.own_encoder import OwnEncoder
from sterad.errors import SteradError

SHAPE = (3, 8, 12)


class Backbone(nn.Module):
    """A small convolutional network with BatchNorm and dropout, as a pretrained one has."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(channels, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.drop = nn.Dropout(0.3)
        self.layer1 = nn.Sequential(nn.Conv2d(4, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.Dropout(0.3))
        self.layer10 = nn.Conv2d(4, 5, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.pool(self.layer10(self.layer1(self.drop(self.stem(x)))))
        return out


class Returns(nn.Module):
    """Returns what a function makes of the batch."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def own(module: Any, shape: tuple[int, ...] = SHAPE, **options: Any) -> OwnEncoder:
    encoder = make_encoder(module, shape, 4, EncoderOptions(**options))
    assert isinstance(encoder, OwnEncoder)
    return encoder


def test_the_feature_size_is_found_and_the_module_stays_as_it_is() -> None:
    module = Backbone().train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    rng = torch.get_rng_state()
    encoder = own(module, frozen=True)
    assert torch.equal(rng, torch.get_rng_state()), "nothing is drawn"
    assert encoder.features == 5
    assert encoder(torch.rand(7, *SHAPE)).shape == (7, 5)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert module.training
    assert all(weight.requires_grad for weight in module.parameters())
    assert not {id(one) for one in encoder.parameters()} & {id(one) for one in module.parameters()}


def width_only(width: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(288, width))


def both(shape: tuple[int, ...], features: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], features))


@pytest.mark.parametrize(
    ("factory", "features"), [(Backbone, 5), (lambda: Backbone(), 5), (width_only, 4), (both, 4)]
)
def test_factories(factory: Callable[..., nn.Module], features: int) -> None:
    assert own(factory).features == features


def test_a_lazy_module_is_initialized() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lazy modules are experimental in older versions of torch
        lazy = nn.Sequential(nn.Flatten(), nn.LazyLinear(6))
    assert own(lazy).features == 6


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x, r"torch.float32 of shape \(2, 3, 8, 12\) for 2 inputs: return floats"),
        (lambda x: x.flatten(), r"shape \(576,\)"),
        (lambda x: x.flatten(1)[:1], r"shape \(1, 288\) for 2 inputs"),
        (lambda x: x.flatten(1)[:, :0], r"shape \(2, 0\)"),
        (lambda x: x.flatten(1).long(), "returns torch.int64"),
        (lambda x: (x.flatten(1),), "returns a tuple: return one tensor of features"),
        (lambda x: x.flatten(1)[:, : len(x)], "returns 2 or 3 features, depending on the batch"),
        (lambda x: x.flatten(1) / 0 * 0, "returns NaN or infinite features"),
        (lambda x: x @ torch.ones(5, 5), r"fails on inputs of shape \(2, 3, 8, 12\) \(RuntimeErr"),
    ],
)
def test_outputs_that_are_no_features_are_refused(function: Any, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        own(Returns(function))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda a, b, c: Backbone(), "takes a, b, c: the function of an encoder takes nothing, or"),
        (lambda: 3, "returns a int: return a torch module"),
        (3, "the encoder is a int: give a name, a torch module or a function"),
        ("resnet81", r"did you mean 'resnet18'\? .* FILE.py:FUNCTION calls your function"),
        ("no_such_file.py:backbone", "'no_such_file.py' is not a file"),
        ("timm:resnet50", "needs the package timm, which cannot be imported .*: pip install timm"),
    ],
)
def test_sources_that_are_no_encoders_are_refused(source: Any, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        make_encoder(source, SHAPE, 4)


def test_a_file_without_the_function_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("def small():\n    ...\n")
    with pytest.raises(SteradError, match=r"nets.py' has no function 'large': it has small"):
        make_encoder(f"{tmp_path / 'nets.py'}:large", SHAPE, 4)


def test_a_module_that_cannot_be_copied_is_refused() -> None:
    module = Backbone()
    module.lock = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(SteradError, match=r"Backbone cannot be copied \(TypeError: .* give a func"):
        make_encoder(module, SHAPE, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frozen": True, "train_from": "layer1"}, "train_from=layer1 has no effect on a frozen"),
        ({"frozen": True, "encoder_lr": 0.1}, "encoder_lr=0.1 has no effect on a frozen encoder"),
        ({"train_from": " , "}, "names no layer"),
        ({"train_from": "layer"}, "matches no weight of the encoder: its weights are stem.0.weigh"),
        ({"input_std": (1.0, 0.0, 1.0)}, "has values that are not positive"),
        ({"input_mean": (0.1,) * 3, "input_std": (1.0,)}, "input_mean has 3 values and input_std"),
        ({"input_mean": (0.1,) * 2}, r"2 and 2 values, and inputs of shape \(3, 8, 12\) have 3 ch"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        own(Backbone(), **options)


def test_vectors_are_not_resized() -> None:
    with pytest.raises(SteradError, match=r"input_size resizes images, and inputs .* are vectors"):
        own(nn.Linear(5, 2), (5,), input_size=8)


def test_a_frozen_encoder_stays_in_evaluation_mode() -> None:
    encoder = own(Backbone(), frozen=True).train()
    assert encoder.training
    assert not any(layer.training for layer in encoder.module.modules())
    assert not any(weight.requires_grad for weight in encoder.parameters())


def test_only_layers_of_a_name_are_trained() -> None:
    encoder = own(Backbone(), train_from="layer1").eval().train()
    trained = {name for name, one in encoder.module.named_parameters() if one.requires_grad}
    assert trained == {"layer1.0.weight", "layer1.0.bias", "layer1.1.weight", "layer1.1.bias"}
    modes = {name: layer.training for name, layer in encoder.module.named_modules()}
    training = {name for name, mode in modes.items() if mode}
    assert training == {"", "layer1", "layer1.0", "layer1.1", "layer1.2"}
    several = own(Backbone(), train_from="layer10., stem.1")
    trained = {name for name, one in several.module.named_parameters() if one.requires_grad}
    assert trained == {"layer10.weight", "layer10.bias", "stem.1.weight", "stem.1.bias"}


def test_inputs_are_resized_and_normalized() -> None:
    x = torch.rand(4, *SHAPE)
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    encoder = own(nn.Flatten(), input_mean=mean, input_std=std, input_size=6)
    resized = nn.functional.interpolate(x, (6, 6), mode="bilinear", antialias=True)
    expected = torch.stack([(resized[:, c] - mean[c]) / std[c] for c in range(3)], dim=1)
    assert torch.allclose(encoder(x), expected.flatten(1), atol=1e-6)
    gray = own(nn.Flatten(), (1, 8, 8), input_mean=mean)
    x = torch.rand(2, 1, 8, 8)
    assert torch.allclose(gray(x)[:, 128:], x.flatten(1) - 0.3)
    vectors = own(nn.Identity(), (2,), input_std=(2.0, 4.0))
    assert torch.equal(vectors(torch.ones(1, 2)), torch.tensor([[0.5, 0.25]]))


def test_registered_encoders_get_the_resized_shape() -> None:
    encoder = make_encoder("resnet18", (3, 8, 8), 2, EncoderOptions(input_size=64))
    assert encoder.features == 8 * 2 * 4
    assert encoder(torch.rand(2, 3, 8, 8)).shape == (2, 64)


def test_random_numbers_come_from_a_seed_of_the_run() -> None:
    module, x = Backbone(), torch.rand(4, *SHAPE)
    encoder, resumed = own(module), own(module)
    rng = torch.get_rng_state()
    first = encoder(x)
    assert not torch.equal(first, resumed(x)), "another seed, another dropout"
    resumed.load_state_dict(encoder.state_dict())
    second = encoder(x)
    assert not torch.equal(first, second), "dropout differs from pass to pass"
    assert torch.equal(resumed(x), second), "the state holds the position of the generator"
    assert torch.equal(rng, torch.get_rng_state())


def test_a_module_without_random_numbers_has_no_seed() -> None:
    assert "seed_and_passes" not in own(nn.Sequential(nn.Flatten(), nn.Linear(288, 2))).state_dict()
    assert "seed_and_passes" not in own(Backbone(), frozen=True).state_dict()


def test_a_single_image_uses_running_statistics() -> None:
    encoder = own(nn.Sequential(nn.Flatten(), nn.Linear(288, 3), nn.BatchNorm1d(3)))
    norm: Any = encoder.module.get_submodule("2")
    assert encoder.train()(torch.rand(1, *SHAPE)).shape == (1, 3)
    assert norm.training
    assert int(norm.num_batches_tracked) == 0
    encoder(torch.rand(2, *SHAPE))
    assert int(norm.num_batches_tracked) == 1


def test_options_of_another_dataclass() -> None:
    options = EncoderOptions(frozen=True, input_size=9)
    assert EncoderOptions.of(options) == options
    assert replace(options, input_size=None).changes_inputs is False
