"""ResNet-18: published sizes and parameter counts, and a second computation by hand."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sterad.encoders import ENCODERS, Encoder
from sterad.encoders.resnet import (
    BasicBlock,
    PreactivationBlock,
    PreactivationResNet18,
    ResNet18,
)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def on_meta(name: str, channels: int, side: int, width: int) -> Encoder:
    with torch.device("meta"):
        return ENCODERS[name]((channels, side, side), width)


@pytest.mark.parametrize(
    ("name", "side", "width", "features"),
    [
        ("resnet18", 8, 64, 512),
        ("resnet18", 16, 64, 512),
        ("resnet18", 28, 64, 512),
        ("resnet18", 32, 64, 512),
        ("resnet18", 64, 64, 2048),
        ("resnet18", 128, 64, 8192),
        ("resnet18", 8, 20, 160),
        ("resnet18", 32, 20, 160),
        ("resnet18-7x7", 128, 64, 512),
        ("resnet18-7x7", 32, 64, 512),
        ("resnet18-7x7", 256, 64, 2048),
    ],
)
def test_feature_sizes_are_the_published_ones(
    name: str, side: int, width: int, features: int
) -> None:
    encoder = on_meta(name, 3, side, width)
    assert encoder.features == features
    assert encoder(torch.empty(2, 3, side, side, device="meta")).shape == (2, features)


@pytest.mark.parametrize("name", ["resnet18", "resnet18-7x7"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [8, 9, 16, 28, 32, 40, 64, 100, 128])
def test_any_size_and_number_of_channels(name: str, channels: int, side: int) -> None:
    encoder = ENCODERS[name]((channels, side, side), 2)
    features = encoder(torch.rand(2, channels, side, side))
    assert features.shape == (2, encoder.features)
    assert bool(features.isfinite().all())
    features.sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_parameter_count_is_the_published_one() -> None:
    # The released encoder also has a linear layer 512 → 100 that is never used.
    assert count(on_meta("resnet18", 3, 32, 64)) == 11_220_132 - (512 * 100 + 100)
    assert count(on_meta("resnet18", 3, 64, 64)) == count(on_meta("resnet18", 3, 32, 64))
    gray = count(on_meta("resnet18", 1, 32, 64))
    assert count(on_meta("resnet18", 3, 32, 64)) - gray == 2 * 9 * 64


def test_large_stem_differs_in_its_convolution_only() -> None:
    small, large = on_meta("resnet18", 3, 128, 64), on_meta("resnet18-7x7", 3, 128, 64)
    assert count(large) - count(small) == 3 * 64 * (49 - 9)


def norm(x: Tensor, layer: nn.BatchNorm2d) -> Tensor:
    """Normalize by the batch statistics."""
    mean = x.mean((0, 2, 3), keepdim=True)
    variance = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
    scale, shift = layer.weight.view(1, -1, 1, 1), layer.bias.view(1, -1, 1, 1)
    return (x - mean) / (variance + 1e-5).sqrt() * scale + shift


def randomize_norms(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -1, 1)


def by_hand(block: BasicBlock, x: Tensor, stride: int) -> Tensor:
    y = functional.conv2d(x, block.conv1.weight, stride=stride, padding=1)
    y = norm(y, block.norm1).clamp(min=0)
    y = norm(functional.conv2d(y, block.conv2.weight, padding=1), block.norm2)
    if isinstance(block.shortcut, nn.Sequential):
        conv, layer = block.shortcut
        assert isinstance(layer, nn.BatchNorm2d)
        assert isinstance(conv, nn.Conv2d)
        x = norm(functional.conv2d(x, conv.weight, stride=stride), layer)
    return (y + x).clamp(min=0)


@pytest.mark.parametrize(
    ("inputs", "outputs", "stride"), [(4, 4, 1), (4, 8, 2), (4, 8, 1), (4, 4, 2)]
)
def test_block_by_hand(inputs: int, outputs: int, stride: int) -> None:
    block = BasicBlock(inputs, outputs, stride).double()
    randomize_norms(block)
    x = torch.randn(3, inputs, 9, 9, dtype=torch.float64)
    assert isinstance(block.shortcut, nn.Identity) == ((inputs, stride) == (outputs, 1))
    assert torch.allclose(block(x), by_hand(block, x, stride), atol=1e-12)


@pytest.mark.parametrize("large", [False, True])
def test_encoder_by_hand(large: bool) -> None:
    side = 128 if large else 32
    encoder = ResNet18((3, side, side), 2, large_stem=large).double()
    x = torch.randn(2, 3, side, side, dtype=torch.float64)
    conv, layer = encoder.stem[0], encoder.stem[1]
    assert isinstance(conv, nn.Conv2d)
    assert isinstance(layer, nn.BatchNorm2d)
    y = functional.conv2d(x, conv.weight, stride=2 if large else 1, padding=3 if large else 1)
    y = norm(y, layer).clamp(min=0)
    if large:
        y = functional.max_pool2d(y, 3, stride=2, padding=1)
    for stage, stride in zip(encoder.stages, (1, 2, 2, 2), strict=True):
        first, second = stage.children()
        assert isinstance(first, BasicBlock)
        assert isinstance(second, BasicBlock)
        y = by_hand(second, by_hand(first, y, stride), 1)
    assert y.shape == (2, 16, 4, 4)
    assert torch.allclose(encoder(x), y.mean((2, 3)), atol=1e-10)


def test_evaluation_does_not_depend_on_the_other_images() -> None:
    encoder = ENCODERS["resnet18"]((1, 8, 8), 4)
    x = torch.rand(6, 1, 8, 8)
    encoder(x)
    in_training = encoder(x)
    encoder.eval()
    together = encoder(x)
    assert torch.allclose(encoder(x[:1]), together[:1], atol=1e-6)
    assert not torch.allclose(in_training, together, atol=1e-3)


@pytest.mark.parametrize(
    ("side", "width", "features"), [(8, 20, 160), (32, 64, 512), (64, 64, 2048)]
)
def test_preactivation_feature_sizes(side: int, width: int, features: int) -> None:
    with torch.device("meta"):
        encoder = ENCODERS["preact-resnet18"]((3, side, side), width)
        assert encoder(torch.empty(2, 3, side, side)).shape == (2, features)
    assert encoder.features == features


def test_preactivation_parameter_count() -> None:
    with torch.device("meta"):
        encoder = PreactivationResNet18((3, 32, 32), 64)
    blocks = 0
    for inputs, outputs in [(64, 64), (64, 128), (128, 256), (256, 512)]:
        blocks += 9 * (inputs * outputs + 3 * outputs * outputs)  # four convolutions
        blocks += 2 * (inputs + 3 * outputs)  # the norms before them
        blocks += inputs * outputs if inputs != outputs else 0  # a shortcut without norm
    assert count(encoder) == 3 * 9 * 64 + blocks + 2 * 512


def preactivation_by_hand(block: PreactivationBlock, x: Tensor, stride: int) -> Tensor:
    active = norm(x, block.norm1).clamp(min=0)
    y = functional.conv2d(active, block.conv1.weight, stride=stride, padding=1)
    y = functional.conv2d(norm(y, block.norm2).clamp(min=0), block.conv2.weight, padding=1)
    if block.shortcut is None:
        return y + x
    assert isinstance(block.shortcut, nn.Conv2d)
    return y + functional.conv2d(active, block.shortcut.weight, stride=stride)


@pytest.mark.parametrize(
    ("inputs", "outputs", "stride"), [(4, 4, 1), (4, 8, 2), (4, 8, 1), (4, 4, 2)]
)
def test_preactivation_block_by_hand(inputs: int, outputs: int, stride: int) -> None:
    block = PreactivationBlock(inputs, outputs, stride).double()
    randomize_norms(block)
    x = torch.randn(3, inputs, 9, 9, dtype=torch.float64)
    assert (block.shortcut is None) == ((inputs, stride) == (outputs, 1))
    assert torch.allclose(block(x), preactivation_by_hand(block, x, stride), atol=1e-12)


def test_preactivation_encoder_by_hand() -> None:
    encoder = PreactivationResNet18((3, 32, 32), 2).double()
    randomize_norms(encoder)
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    y = functional.conv2d(x, encoder.stem.weight, padding=1)
    for stage, stride in zip(encoder.stages, (1, 2, 2, 2), strict=True):
        first, second = stage.children()
        assert isinstance(first, PreactivationBlock)
        assert isinstance(second, PreactivationBlock)
        y = preactivation_by_hand(second, preactivation_by_hand(first, y, stride), 1)
    y = norm(y, encoder.norm).clamp(min=0)
    assert y.shape == (2, 16, 4, 4)
    assert torch.allclose(encoder(x), y.mean((2, 3)), atol=1e-10)


def test_preactivation_trains_on_one_image_with_a_last_map_of_one_pixel() -> None:
    encoder = PreactivationResNet18((1, 8, 8), 2)
    encoder(torch.rand(4, 1, 8, 8))
    encoder(torch.rand(1, 1, 8, 8)).sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())
