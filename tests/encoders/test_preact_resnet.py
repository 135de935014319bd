"""Pre-activation ResNet-18: sizes, and a second, literal computation."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sterad.encoders import ENCODERS
from sterad.encoders.preact_resnet import PreactivationBlock, PreactivationResNet18


@pytest.mark.parametrize(
    ("side", "width", "features"), [(8, 20, 160), (32, 64, 512), (64, 64, 2048)]
)
def test_feature_sizes_are_those_of_resnet18(side: int, width: int, features: int) -> None:
    with torch.device("meta"):
        encoder = ENCODERS["preact-resnet18"]((3, side, side), width)
        assert encoder(torch.empty(2, 3, side, side)).shape == (2, features)
    assert encoder.features == features


def test_the_count_of_weights() -> None:
    with torch.device("meta"):
        encoder = PreactivationResNet18((3, 32, 32), 64)
    blocks = 0
    for inputs, outputs in [(64, 64), (64, 128), (128, 256), (256, 512)]:
        blocks += 9 * (inputs * outputs + 3 * outputs * outputs)  # four convolutions
        blocks += 2 * (inputs + 3 * outputs)  # the norms before them
        blocks += inputs * outputs if inputs != outputs else 0  # a shortcut without norm
    counted = sum(parameter.numel() for parameter in encoder.parameters())
    assert counted == 3 * 9 * 64 + blocks + 2 * 512


def norm(x: Tensor, layer: nn.BatchNorm2d) -> Tensor:
    """Batch statistics, by the formula."""
    mean = x.mean((0, 2, 3), keepdim=True)
    variance = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
    scale, shift = layer.weight.view(1, -1, 1, 1), layer.bias.view(1, -1, 1, 1)
    return (x - mean) / (variance + 1e-5).sqrt() * scale + shift


def by_hand(block: PreactivationBlock, x: Tensor, stride: int) -> Tensor:
    active = norm(x, block.norm1).clamp(min=0)
    y = functional.conv2d(active, block.conv1.weight, stride=stride, padding=1)
    y = functional.conv2d(norm(y, block.norm2).clamp(min=0), block.conv2.weight, padding=1)
    if block.shortcut is None:
        return y + x
    assert isinstance(block.shortcut, nn.Conv2d)
    return y + functional.conv2d(active, block.shortcut.weight, stride=stride)


def shaken(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -1, 1)


@pytest.mark.parametrize(
    ("inputs", "outputs", "stride"), [(4, 4, 1), (4, 8, 2), (4, 8, 1), (4, 4, 2)]
)
def test_a_block_by_hand(inputs: int, outputs: int, stride: int) -> None:
    block = PreactivationBlock(inputs, outputs, stride).double()
    shaken(block)
    x = torch.randn(3, inputs, 9, 9, dtype=torch.float64)
    assert (block.shortcut is None) == ((inputs, stride) == (outputs, 1))
    assert torch.allclose(block(x), by_hand(block, x, stride), atol=1e-12)


def test_the_whole_encoder_by_hand() -> None:
    encoder = PreactivationResNet18((3, 32, 32), 2).double()
    shaken(encoder)
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    y = functional.conv2d(x, encoder.stem.weight, padding=1)
    for stage, stride in zip(encoder.stages, (1, 2, 2, 2), strict=True):
        first, second = stage.children()
        assert isinstance(first, PreactivationBlock)
        assert isinstance(second, PreactivationBlock)
        y = by_hand(second, by_hand(first, y, stride), 1)
    y = norm(y, encoder.norm).clamp(min=0)
    assert y.shape == (2, 16, 4, 4)
    assert torch.allclose(encoder(x), y.mean((2, 3)), atol=1e-10)


def test_it_trains_on_a_single_image_whose_last_map_is_a_pixel() -> None:
    encoder = PreactivationResNet18((1, 8, 8), 2)
    encoder(torch.rand(4, 1, 8, 8))
    encoder(torch.rand(1, 1, 8, 8)).sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())
