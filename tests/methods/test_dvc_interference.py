"""Interference against gradients of single samples, before and after a real step."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.encoders import Network, build_network
from sterad.methods.dvc import gradient_norm, most_interfered


def network() -> Network:
    made = build_network("resnet18", (1, 8, 8), 2, "linear", 5, torch.Generator().manual_seed(1))
    made(images(32))  # running statistics that are not the first ones
    return made


def images(n: int) -> Tensor:
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(2))


def lengths(model: Network, x: Tensor, y: Tensor) -> Tensor:
    """Return the sum of absolute gradients of the head's weights, a backward pass a sample."""
    model.eval()
    found = []
    for image, label in zip(x.split(1), y.split(1), strict=True):
        head = model.head
        assert isinstance(head, torch.nn.Linear)
        (gradient,) = torch.autograd.grad(F.cross_entropy(model(image), label), head.weight)
        found.append(gradient.abs().sum())
    return torch.stack(found)


def test_the_worst_first_by_single_gradients_around_a_real_step() -> None:
    model, x, lr = network(), images(20), 0.5
    y = torch.arange(20) % 5
    F.cross_entropy(model(x[:6]), y[:6]).backward()
    stepped = copy.deepcopy(model)
    for parameter, theirs in zip(stepped.parameters(), model.parameters(), strict=True):
        parameter.grad = None if theirs.grad is None else theirs.grad.clone()
    torch.optim.SGD(stepped.parameters(), lr=lr).step()
    rises = lengths(stepped, x, y) - lengths(model, x, y)
    model.train()
    chosen = most_interfered(model, x, y, lr, 7)
    assert chosen.tolist() == rises.argsort(descending=True)[:7].tolist()


def test_nothing_is_left_of_the_step() -> None:
    model, x = network(), images(20)
    y = torch.arange(20) % 5
    F.cross_entropy(model(x[:6]), y[:6]).backward()
    before = copy.deepcopy(model.state_dict())
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    most_interfered(model, x, y, 0.5, 7)
    assert model.training
    assert before.keys() == model.state_dict().keys()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    after = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.equal(a, b) for a, b in zip(gradients, after, strict=True))


def test_both_looks_have_the_precision_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, y = network(), images(8), torch.arange(8) % 5
    model.precision = torch.bfloat16
    F.cross_entropy(model(x), y).backward()
    seen: list[Tensor] = []

    def noted(h: Tensor, z: Tensor, y: Tensor) -> Tensor:
        seen.append(h)
        return gradient_norm(h, z, y)

    monkeypatch.setattr("sterad.methods.dvc.gradient_norm", noted)
    most_interfered(model, x, y, lr=0.0, n=3)
    assert torch.equal(*seen), "a step of no length changes nothing"
