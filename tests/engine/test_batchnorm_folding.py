"""A folded network has the outputs of the original, whatever its weights and layers are."""

import copy
from collections.abc import Callable
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from sterad.encoders import Encoder, Network, build_network, make_encoder, make_head
from sterad.encoders.encoder import Folds
from sterad.encoders.resnet import BasicBlock, ResNet18
from sterad.engine.batchnorm_folding import WeightBuffers, folded

SHAPE = (3, 16, 16)


def trained(network: Network) -> Network:
    """Train for some steps, so that weights and running statistics differ from initial ones."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for step in range(6):
        optimizer.zero_grad()
        x = (1 + step) * torch.rand(8, *SHAPE)
        F.cross_entropy(network(x), torch.arange(8) % 4).backward()
        optimizer.step()
    return network.eval()


def build(encoder: str = "resnet18") -> Network:
    rng = torch.Generator().manual_seed(0)
    return trained(build_network(lambda: make_encoder(encoder, SHAPE, 3), "mlp", 4, rng))


def count_norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def assert_same_outputs(network: Network, result: Network) -> None:
    x = torch.rand(9, *SHAPE)
    with torch.inference_mode():
        for output, expected in zip(
            result.features_and_outputs(x), network.features_and_outputs(x), strict=True
        ):
            atol = 1e-5 * float(expected.abs().max())
            assert torch.allclose(output, expected, rtol=1e-4, atol=atol)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    ("encoder", "norms"),
    [("resnet18", 0), ("resnet18-7x7", 0), ("preact-resnet18", 9), ("mlp", 0)],
)
def test_outputs_are_equal(encoder: str, norms: int, memory_format: torch.memory_format) -> None:
    network = build(encoder).to(memory_format=memory_format)  # type: ignore[call-overload]
    result = folded(network)
    assert count_norms(result) == norms
    for conv in result.modules():
        if isinstance(conv, nn.Conv2d):
            assert conv.weight.is_contiguous(memory_format=memory_format)
    assert_same_outputs(network, result)


def test_running_statistics_change_the_outputs() -> None:
    network = build()
    without = copy.deepcopy(network)
    for norm in without.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.reset_running_stats()
    with pytest.raises(AssertionError):
        assert_same_outputs(network, folded(without))


def test_folding_does_not_change_the_network() -> None:
    network, x = build(), torch.rand(5, *SHAPE)
    state, before = copy.deepcopy(network.state_dict()), network(x)
    result = folded(network)
    with torch.inference_mode():
        for conv in result.modules():
            if isinstance(conv, nn.Conv2d):
                conv.weight.zero_()
    assert count_norms(network) == 20
    assert torch.equal(network(x), before)
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())


def test_a_network_in_training_is_not_folded() -> None:
    network = build().train()
    assert folded(network) is network


def test_buffers_are_reused_and_follow_the_weights() -> None:
    network, buffers = build(), WeightBuffers()
    folded(network, buffers)
    pointers = [weight.data_ptr() for weight in buffers.values()]
    trained(network.train())
    assert_same_outputs(network, folded(network, buffers))
    assert [weight.data_ptr() for weight in buffers.values()] == pointers
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    stem = folded(network, buffers).encoder.get_submodule("stem.0")
    assert isinstance(stem, nn.Conv2d)
    assert stem.weight.is_contiguous(memory_format=torch.channels_last)


class Declared(Encoder):
    """An encoder that declares its convolution and normalization in `folds`."""

    folds: ClassVar[Folds] = (("conv", "norm"),)
    features = 4

    def __init__(self, conv: nn.Module | None = None, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2) if conv is None else conv
        self.norm = nn.BatchNorm2d(4) if norm is None else norm

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.conv(x))
        return y.mean((2, 3))


class UsesOutputTwice(Declared):
    """Overrides `forward`, where the output of the convolution is used twice."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        return (F.relu(self.norm(y)) - y).mean((2, 3))


class SkipsNorm(BasicBlock):
    """A block whose first convolution also bypasses the normalization."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(x)
        z: Tensor = self.norm2(self.conv2(F.relu(self.norm1(y)))) + self.shortcut(x) + y
        return z


class UsesRawStem(ResNet18):
    """A ResNet that also uses its stem before the normalization."""

    def forward(self, x: Tensor) -> Tensor:
        raw: Tensor = self.stem[0](x)
        return super().forward(x) + raw.mean()


class ResidualNorm(nn.BatchNorm2d):
    """A subclass of BatchNorm with another forward pass."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) + input


class Double(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


def make_tied_convolutions() -> Encoder:
    encoder = ResNet18(SHAPE, 3)
    first, second = encoder.get_submodule("stages.0").children()
    second.conv1, second.norm2 = first.conv1, first.norm2
    return encoder


def make_skipping_blocks() -> Encoder:
    encoder = ResNet18(SHAPE, 3)
    encoder.stages[0] = nn.Sequential(SkipsNorm(3, 3, 1), BasicBlock(3, 3, 1))
    return encoder


def make_parametrized_convolution() -> Encoder:
    encoder = Declared()
    parametrize.register_parametrization(encoder.conv, "weight", Double())
    return encoder


def make_patched_convolution() -> Encoder:
    encoder = Declared()
    forward = encoder.conv.forward
    encoder.conv.forward = lambda x: 2 * forward(x)
    return encoder


@pytest.mark.parametrize(
    ("make", "norms"),
    [
        (Declared, 0),
        (lambda: Declared(nn.Conv2d(3, 4, 3, bias=False)), 0),
        (lambda: Declared(nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect", dilation=2)), 0),
        (lambda: Declared(norm=nn.BatchNorm2d(4, affine=False)), 0),
        (make_tied_convolutions, 0),
        (UsesOutputTwice, 1),
        (make_skipping_blocks, 2),
        (lambda: UsesRawStem(SHAPE, 3), 1),
        (lambda: Declared(norm=ResidualNorm(4)), 1),
        (lambda: Declared(norm=nn.BatchNorm2d(4, track_running_stats=False)), 1),
        (lambda: Declared(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh())), 1),
        (make_parametrized_convolution, 1),
        (make_patched_convolution, 1),
    ],
)
def test_outputs_of_other_encoders_are_equal(make: Callable[[], Encoder], norms: int) -> None:
    encoder = make()
    network = trained(Network(encoder, make_head("linear", encoder.features, 4)))
    result = folded(network)
    assert count_norms(result) == norms
    assert_same_outputs(network, result)


def test_layers_with_hooks_are_not_folded() -> None:
    network, outputs = build(), list[Tensor]()
    stem = network.encoder.get_submodule("stem.1")
    stem.register_forward_hook(lambda layer, args, out: outputs.append(out))
    result = folded(network)
    assert count_norms(result) == 1
    assert_same_outputs(network, result)
    assert len(outputs) == 2
