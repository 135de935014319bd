"""A head that grew in training is the head that was wide from the start."""

import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from sterad.encoders.growth import carry_over, grow
from sterad.encoders.heads import last_layer, make_head
from sterad.errors import SteradError

OPTIMISERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "sgd": lambda module: SGD(module.parameters(), lr=0.1),
    "momentum": lambda module: SGD(module.parameters(), lr=0.1, momentum=0.9),
    "adam": lambda module: Adam(module.parameters(), lr=0.01),
    "amsgrad": lambda module: AdamW(module.parameters(), lr=0.01, weight_decay=0, amsgrad=True),
}


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def outer(head: nn.Module) -> nn.Linear:
    layer = last_layer(head)
    assert layer is not None
    return layer


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_old_rows_keep_their_bits(kind: str) -> None:
    head = make_head(kind, 6, 4)
    x = torch.rand(5, 6)
    before, weight, bias = head(x), outer(head).weight, outer(head).bias
    replaced = grow(head, 9, rng())
    layer = outer(head)
    assert [(id(a), id(b)) for a, b in replaced] == [
        (id(weight), id(layer.weight)),
        (id(bias), id(layer.bias)),
    ]
    assert torch.equal(layer.weight[:4], weight)
    assert torch.equal(layer.bias[:4], bias)
    assert layer.out_features == 9
    assert head(x).shape == (5, 9)
    assert torch.allclose(head(x)[:, :4], before, atol=1e-6)
    head(x).sum().backward()
    assert layer.weight.grad is not None


def test_new_rows_are_torchs_default_for_a_layer_of_that_width() -> None:
    head = make_head("linear", 400, 1)
    state = torch.get_rng_state()
    grow(head, 2001, rng())
    assert torch.equal(torch.get_rng_state(), state)
    for values in (outer(head).weight[1:].detach(), outer(head).bias[1:].detach()):
        # Uniform in ± 1 / √inputs.
        assert float(values.abs().max()) == pytest.approx(0.05, rel=0.01)
        assert float(values.abs().max()) <= 0.05 + 1e-8
        assert float(values.std()) == pytest.approx(0.05 / 3**0.5, rel=0.03)


def test_new_rows_come_from_the_generator() -> None:
    rows = []
    for seed in (1, 1, 2):
        head = make_head("linear", 6, 4)
        grow(head, 8, rng(seed))
        rows.append(outer(head).weight[4:])
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    head, source = make_head("linear", 6, 2), rng()
    grow(head, 4, source)
    grow(head, 6, source)
    assert not torch.equal(outer(head).weight[2:4], outer(head).weight[4:])


def test_a_layer_may_be_frozen_or_without_bias_or_in_half_precision() -> None:
    head = nn.Sequential(nn.Linear(6, 4, bias=False, dtype=torch.bfloat16)).requires_grad_(False)
    ((_, new),) = grow(head, 5, rng())
    assert new.dtype == torch.bfloat16
    assert not new.requires_grad
    assert head(torch.rand(2, 6, dtype=torch.bfloat16)).shape == (2, 5)


def test_growth_needs_no_memory_on_meta() -> None:
    with torch.device("meta"):
        head = make_head("mlp", 6, 4)
        grow(head, 8, rng())
    assert outer(head).weight.is_meta
    assert outer(head).weight.shape == (8, 512)


def test_what_cannot_grow_says_so() -> None:
    with pytest.raises(SteradError, match="choose a linear or mlp head"):
        grow(make_head("none", 6, 6), 8, rng())
    with pytest.raises(SteradError, match="4 outputs cannot shrink to 3"):
        grow(make_head("linear", 6, 4), 3, rng())
    assert grow(make_head("linear", 6, 4), 4, rng()) == []


def step(head: nn.Module, optimizer: Optimizer, gradients: Tensor) -> None:
    """Take a step with gradients that are given, as many rows of them as the layer has."""
    layer = outer(head)
    layer.weight.grad = gradients[: layer.out_features, :-1].clone()
    layer.bias.grad = gradients[: layer.out_features, -1].clone()
    optimizer.step()


@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_training_goes_on_as_if_the_layer_had_always_been_wide(name: str) -> None:
    grown, wide = make_head("linear", 6, 4), make_head("linear", 6, 7)
    optimizer = OPTIMISERS[name](grown)
    gradients = torch.randn(20, 7, 7, generator=rng(3))
    gradients[:10, 4:] = 0  # rows that are not there yet
    start = {key: value.clone() for key, value in grown.state_dict().items()}
    for t in range(10):
        step(grown, optimizer, gradients[t])
    carry_over(optimizer, grow(grown, 7, rng()))
    rows = {key: value[4:].clone() for key, value in grown.state_dict().items()}
    wide.load_state_dict({key: torch.cat([start[key], rows[key]]) for key in start})
    always = OPTIMISERS[name](wide)
    for t in range(10):
        step(wide, always, gradients[t])
    for t in range(10, 20):
        step(grown, optimizer, gradients[t])
        step(wide, always, gradients[t])
    for key, value in wide.state_dict().items():
        assert torch.equal(grown.state_dict()[key], value)
    ours, theirs = optimizer.state_dict(), always.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert ours["state"].keys() == theirs["state"].keys()
    for i, state in theirs["state"].items():
        assert ours["state"][i].keys() == state.keys()
        for key, value in state.items():
            assert value is None or torch.equal(ours["state"][i][key], value)


@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_a_grown_optimizer_can_be_saved_and_loaded(name: str) -> None:
    head = make_head("mlp", 6, 4, hidden=5)
    optimizer = OPTIMISERS[name](head)
    x = torch.rand(8, 6)

    def train(module: nn.Module, on: Optimizer) -> None:
        on.zero_grad()
        module(x).square().sum().backward()
        on.step()

    train(head, optimizer)
    carry_over(optimizer, grow(head, 7, rng()))
    train(head, optimizer)
    file = io.BytesIO()
    torch.save([head.state_dict(), optimizer.state_dict()], file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    again = make_head("mlp", 6, 7, hidden=5)
    again.load_state_dict(weights)
    restored = OPTIMISERS[name](again)
    restored.load_state_dict(state)
    for module, on in ((head, optimizer), (again, restored)):
        train(module, on)
    for key, value in head.state_dict().items():
        assert torch.equal(again.state_dict()[key], value)


def test_parameters_of_others_stay_out() -> None:
    head, other = make_head("linear", 6, 4), nn.Linear(2, 2)
    optimizer = SGD(other.parameters(), lr=0.1)
    carry_over(optimizer, grow(head, 7, rng()))
    assert [id(p) for p in optimizer.param_groups[0]["params"]] == [
        id(p) for p in other.parameters()
    ]
