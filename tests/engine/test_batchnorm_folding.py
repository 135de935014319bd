"""A folded network gives the answers of the network, whatever that has learned and is made of."""

import copy
from collections.abc import Callable
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrize

from sterad.encoders import Encoder, Network, build_network, make_head
from sterad.encoders.encoder import Folds
from sterad.encoders.resnet import BasicBlock, ResNet18
from sterad.engine.batchnorm_folding import WeightBuffers, folded

SHAPE = (3, 16, 16)


def learned(network: Network) -> Network:
    """Train for some steps, so that running statistics and weights are none that one expects."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for step in range(6):
        optimizer.zero_grad()
        x = (1 + step) * torch.rand(8, *SHAPE)
        F.cross_entropy(network(x), torch.arange(8) % 4).backward()
        optimizer.step()
    return network.eval()


def built(encoder: str = "resnet18") -> Network:
    return learned(build_network(encoder, SHAPE, 3, "mlp", 4, torch.Generator().manual_seed(0)))


def norms(network: nn.Module) -> int:
    return sum(isinstance(one, nn.BatchNorm2d) for one in network.modules())


def same_answers(network: Network, joined: Network) -> None:
    x = torch.rand(9, *SHAPE)
    with torch.inference_mode():
        for ours, theirs in zip(
            joined.features_and_outputs(x), network.features_and_outputs(x), strict=True
        ):
            assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    ("encoder", "left"),
    [("resnet18", 0), ("resnet18-7x7", 0), ("preact-resnet18", 9), ("mlp", 0)],
)
def test_answers_are_the_same(encoder: str, left: int, memory_format: torch.memory_format) -> None:
    network = built(encoder).to(memory_format=memory_format)  # type: ignore[call-overload]
    joined = folded(network)
    assert norms(joined) == left
    for conv in joined.modules():
        if isinstance(conv, nn.Conv2d):
            assert conv.weight.is_contiguous(memory_format=memory_format)
    same_answers(network, joined)


def test_statistics_matter_in_these_tests() -> None:
    network = built()
    blank = copy.deepcopy(network)
    for norm in blank.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.reset_running_stats()
    with pytest.raises(AssertionError):
        same_answers(network, folded(blank))


def test_the_network_stays_as_it_was() -> None:
    network, x = built(), torch.rand(5, *SHAPE)
    state, before = copy.deepcopy(network.state_dict()), network(x)
    joined = folded(network)
    with torch.inference_mode():
        for conv in joined.modules():
            if isinstance(conv, nn.Conv2d):
                conv.weight.zero_()
    assert norms(network) == 20
    assert torch.equal(network(x), before)
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())


def test_a_network_in_training_is_not_folded() -> None:
    network = built().train()
    assert folded(network) is network


def test_buffers_are_used_again_and_follows_the_weights() -> None:
    network, buffers = built(), WeightBuffers()
    places = [w.data_ptr() for w in (folded(network, buffers), buffers)[1].values()]
    learned(network.train())
    same_answers(network, folded(network, buffers))
    assert [weight.data_ptr() for weight in buffers.values()] == places
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    stem = folded(network, buffers).encoder.get_submodule("stem.0")
    assert isinstance(stem, nn.Conv2d)
    assert stem.weight.is_contiguous(memory_format=torch.channels_last)


class Own(Encoder):
    """A stem with a pair that it speaks of, as others might write it."""

    folds: ClassVar[Folds] = (("conv", "norm"),)
    features = 4

    def __init__(self, conv: nn.Module | None = None, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2) if conv is None else conv
        self.norm = nn.BatchNorm2d(4) if norm is None else norm

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.conv(x))
        return y.mean((2, 3))


class Silent(Own):
    """Uses the output of the convolution twice, and says nothing of its layers."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        return (F.relu(self.norm(y)) - y).mean((2, 3))


class Doubled(BasicBlock):
    """A block whose first convolution also goes around the normalization."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(x)
        z: Tensor = self.norm2(self.conv2(F.relu(self.norm1(y)))) + self.shortcut(x) + y
        return z


class Inside(ResNet18):
    """A ResNet that looks at its stem before it is normalized."""

    def forward(self, x: Tensor) -> Tensor:
        raw: Tensor = self.stem[0](x)
        return super().forward(x) + raw.mean()


class Moving(nn.BatchNorm2d):
    """A normalization with an idea of its own."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) + input


class Twice(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


def with_tied_convolutions() -> Encoder:
    encoder = ResNet18(SHAPE, 3)
    first, second = encoder.get_submodule("stages.0").children()
    second.conv1, second.norm2 = first.conv1, first.norm2
    return encoder


def with_doubled_blocks() -> Encoder:
    encoder = ResNet18(SHAPE, 3)
    encoder.stages[0] = nn.Sequential(Doubled(3, 3, 1), BasicBlock(3, 3, 1))
    return encoder


def with_a_parametrised_convolution() -> Encoder:
    encoder = Own()
    parametrize.register_parametrization(encoder.conv, "weight", Twice())
    return encoder


def with_a_patched_convolution() -> Encoder:
    encoder = Own()
    plain = encoder.conv.forward
    encoder.conv.forward = lambda x: 2 * plain(x)
    return encoder


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (Own, 0),
        (lambda: Own(nn.Conv2d(3, 4, 3, bias=False)), 0),
        (lambda: Own(nn.Conv2d(3, 4, 3, padding=2, padding_mode="reflect", dilation=2)), 0),
        (lambda: Own(norm=nn.BatchNorm2d(4, affine=False)), 0),
        (with_tied_convolutions, 0),
        (Silent, 1),
        (with_doubled_blocks, 2),
        (lambda: Inside(SHAPE, 3), 1),
        (lambda: Own(norm=Moving(4)), 1),
        (lambda: Own(norm=nn.BatchNorm2d(4, track_running_stats=False)), 1),
        (lambda: Own(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh())), 1),
        (with_a_parametrised_convolution, 1),
        (with_a_patched_convolution, 1),
    ],
)
def test_encoders_of_others_answer_right(make: Callable[[], Encoder], left: int) -> None:
    encoder = make()
    network = learned(Network(encoder, make_head("linear", encoder.features, 4)))
    joined = folded(network)
    assert norms(joined) == left
    same_answers(network, joined)


def test_what_somebody_looks_at_stays() -> None:
    network, seen = built(), list[Tensor]()
    stem = network.encoder.get_submodule("stem.1")
    stem.register_forward_hook(lambda layer, given, out: seen.append(out))
    joined = folded(network)
    assert norms(joined) == 1
    same_answers(network, joined)
    assert len(seen) == 2
