import torch
from torch import nn

from sterad.encoders import carry_over
from sterad.encoders.pair_classifier import PairClassifier
from sterad.seeds import use_generator


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def make(classes: int) -> PairClassifier:
    with use_generator(rng()):
        return PairClassifier(classes)


def logits(classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = torch.randn(2, 6, classes, generator=rng())
    return first, second


def test_equals_two_linear_layers_on_the_logits_of_both_views() -> None:
    with use_generator(rng()):
        expected = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 5))
    first, second = logits(5)
    found = make(5)(first, second)
    assert torch.allclose(found, expected(torch.cat([first, second], dim=1)), atol=1e-6)
    assert sum(p.numel() for p in make(5).parameters()) == sum(
        p.numel() for p in expected.parameters()
    )


def test_growth_keeps_the_logits_of_old_classes() -> None:
    net, (first, second) = make(3), logits(5)
    before = net(first[:, :3], second[:, :3])
    net.widen(5, rng())
    after = net(first, second)
    assert after.shape == (6, 5)
    assert torch.allclose(after[:, :3], before, atol=1e-6)
    assert net.widen(5, rng()) == []


def test_growth_keeps_momentum_and_trains_new_rows() -> None:
    net = make(3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    first, second = logits(5)
    net(first[:, :3], second[:, :3]).square().sum().backward()
    optimizer.step()
    momentum = optimizer.state[net.table]["momentum_buffer"].clone()
    carry_over(optimizer, net.widen(5, rng()))
    assert torch.equal(optimizer.state[net.table]["momentum_buffer"][:3], momentum)
    optimizer.zero_grad()
    net(first, second).square().sum().backward()
    optimizer.step()
    assert bool((net.table[3:] != 0).any())
    optimized = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert optimized == {id(p) for p in net.parameters()}
