"""Heads by kind, and heads that grow during training."""

import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from sterad.encoders.heads import carry_over, frozen_layer, grow, last_layer, make_head
from sterad.errors import SteradError

OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "sgd": lambda module: SGD(module.parameters(), lr=0.1),
    "momentum": lambda module: SGD(module.parameters(), lr=0.1, momentum=0.9),
    "adam": lambda module: Adam(module.parameters(), lr=0.01),
    "amsgrad": lambda module: AdamW(module.parameters(), lr=0.01, weight_decay=0, amsgrad=True),
}


@pytest.mark.parametrize(
    ("kind", "outputs"), [("mlp", 5), ("linear", 5), ("cosine", 5), ("none", 12)]
)
def test_output_shape(kind: str, outputs: int) -> None:
    assert make_head(kind, 12, outputs)(torch.rand(3, 12)).shape == (3, outputs)


def test_layers_of_each_kind() -> None:
    mlp = make_head("mlp", 12, 5, hidden=7)
    first, last = (layer for layer in mlp.modules() if isinstance(layer, nn.Linear))
    x = torch.rand(3, 12)
    hidden = (x @ first.weight.T + first.bias).clamp(min=0)
    assert hidden.shape == (3, 7)
    assert torch.allclose(mlp(x), hidden @ last.weight.T + last.bias, atol=1e-6)
    assert last_layer(mlp) is last
    linear = make_head("linear", 12, 5)
    assert last_layer(linear) is linear
    none = make_head("none", 12, 12)
    assert last_layer(none) is None
    assert none(x) is x


def test_cosine_head_ignores_lengths_and_can_grow() -> None:
    head, x = make_head("cosine", 12, 5), torch.randn(3, 12)
    layer = last_layer(head)
    assert layer is head
    assert layer.bias is None
    for i in range(3):
        for c in range(5):
            row = layer.weight[c]
            cosine = x[i] @ row / (x[i].norm() * row.norm())
            assert head(x)[i, c].item() == pytest.approx(cosine.item(), abs=1e-6)
    assert torch.allclose(head(7 * x), head(x), atol=1e-6)
    assert torch.equal(head(torch.zeros(1, 12)), torch.zeros(1, 5))
    before, optimizer = head(x).detach(), torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
    carry_over(optimizer, grow(head, 8, torch.Generator().manual_seed(0)))
    assert head(x).shape == (3, 8)
    assert torch.allclose(head(x)[:, :5], before, atol=1e-6)
    assert optimizer.param_groups[0]["params"] == [layer.weight]


def test_frozen_layer_uses_no_random_numbers_and_has_no_gradient() -> None:
    rows, state = torch.randn(4, 3), torch.get_rng_state()
    layer, x = frozen_layer(rows), torch.ones(2, 3, requires_grad=True)
    assert torch.equal(torch.get_rng_state(), state)
    layer(x).sum().backward()
    assert torch.allclose(x.grad, rows.sum(0).expand(2, 3))  # type: ignore[arg-type]
    assert layer.weight.grad is None
    assert (layer.in_features, layer.out_features) == (3, 4)
    assert layer.bias is None
    rows.zero_()
    assert bool(layer.weight.all()), "the weight is a copy"


def test_invalid_heads_raise() -> None:
    with pytest.raises(
        SteradError, match="unknown head 'tanh': choose one of mlp, linear, cosine, none"
    ):
        make_head("tanh", 12, 5)
    with pytest.raises(SteradError, match="the 12 features are the outputs, not 5"):
        make_head("none", 12, 5)
    with pytest.raises(SteradError, match="to 0 outputs"):
        make_head("linear", 12, 0)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def output_layer(head: nn.Module) -> nn.Linear:
    layer = last_layer(head)
    assert layer is not None
    return layer


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_growth_keeps_old_rows(kind: str) -> None:
    head = make_head(kind, 6, 4)
    x = torch.rand(5, 6)
    before, weight, bias = head(x), output_layer(head).weight, output_layer(head).bias
    replaced = grow(head, 9, rng())
    layer = output_layer(head)
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


def test_new_rows_have_the_default_initialization_of_torch() -> None:
    head = make_head("linear", 400, 1)
    state = torch.get_rng_state()
    grow(head, 2001, rng())
    assert torch.equal(torch.get_rng_state(), state)
    for values in (output_layer(head).weight[1:].detach(), output_layer(head).bias[1:].detach()):
        # Uniform in ± 1 / √inputs.
        assert float(values.abs().max()) == pytest.approx(0.05, rel=0.01)
        assert float(values.abs().max()) <= 0.05 + 1e-8
        assert float(values.std()) == pytest.approx(0.05 / 3**0.5, rel=0.03)


def test_new_rows_depend_on_the_generator() -> None:
    rows = []
    for seed in (1, 1, 2):
        head = make_head("linear", 6, 4)
        grow(head, 8, rng(seed))
        rows.append(output_layer(head).weight[4:])
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    head, generator = make_head("linear", 6, 2), rng()
    grow(head, 4, generator)
    grow(head, 6, generator)
    assert not torch.equal(output_layer(head).weight[2:4], output_layer(head).weight[4:])


def test_growth_of_a_frozen_layer_without_bias_in_half_precision() -> None:
    head = nn.Sequential(nn.Linear(6, 4, bias=False, dtype=torch.bfloat16)).requires_grad_(False)
    ((_, new),) = grow(head, 5, rng())
    assert new.dtype == torch.bfloat16
    assert not new.requires_grad
    assert head(torch.rand(2, 6, dtype=torch.bfloat16)).shape == (2, 5)


def test_growth_on_meta() -> None:
    with torch.device("meta"):
        head = make_head("mlp", 6, 4)
        grow(head, 8, rng())
    assert output_layer(head).weight.is_meta
    assert output_layer(head).weight.shape == (8, 512)


def test_invalid_growth_raises() -> None:
    with pytest.raises(SteradError, match="choose a linear or mlp head"):
        grow(make_head("none", 6, 6), 8, rng())
    with pytest.raises(SteradError, match="4 outputs cannot shrink to 3"):
        grow(make_head("linear", 6, 4), 3, rng())
    assert grow(make_head("linear", 6, 4), 4, rng()) == []


def step(head: nn.Module, optimizer: Optimizer, gradients: Tensor) -> None:
    """Take a step with the first rows of `gradients`, as many as the layer has outputs."""
    layer = output_layer(head)
    layer.weight.grad = gradients[: layer.out_features, :-1].clone()
    layer.bias.grad = gradients[: layer.out_features, -1].clone()
    optimizer.step()


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_training_after_growth_equals_training_of_a_wide_layer(name: str) -> None:
    grown, wide = make_head("linear", 6, 4), make_head("linear", 6, 7)
    optimizer = OPTIMIZERS[name](grown)
    gradients = torch.randn(20, 7, 7, generator=rng(3))
    gradients[:10, 4:] = 0  # rows that do not exist yet
    start = {key: value.clone() for key, value in grown.state_dict().items()}
    for t in range(10):
        step(grown, optimizer, gradients[t])
    carry_over(optimizer, grow(grown, 7, rng()))
    rows = {key: value[4:].clone() for key, value in grown.state_dict().items()}
    wide.load_state_dict({key: torch.cat([start[key], rows[key]]) for key in start})
    wide_optimizer = OPTIMIZERS[name](wide)
    for t in range(10):
        step(wide, wide_optimizer, gradients[t])
    for t in range(10, 20):
        step(grown, optimizer, gradients[t])
        step(wide, wide_optimizer, gradients[t])
    for key, value in wide.state_dict().items():
        assert torch.equal(grown.state_dict()[key], value)
    found, expected = optimizer.state_dict(), wide_optimizer.state_dict()
    assert found["param_groups"] == expected["param_groups"]
    assert found["state"].keys() == expected["state"].keys()
    for i, state in expected["state"].items():
        assert found["state"][i].keys() == state.keys()
        for key, value in state.items():
            assert value is None or torch.equal(found["state"][i][key], value)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_optimizer_of_a_grown_head_can_be_saved_and_loaded(name: str) -> None:
    head = make_head("mlp", 6, 4, hidden=5)
    optimizer = OPTIMIZERS[name](head)
    x = torch.rand(8, 6)

    def train(module: nn.Module, optimizer: Optimizer) -> None:
        optimizer.zero_grad()
        module(x).square().sum().backward()
        optimizer.step()

    train(head, optimizer)
    carry_over(optimizer, grow(head, 7, rng()))
    train(head, optimizer)
    file = io.BytesIO()
    torch.save([head.state_dict(), optimizer.state_dict()], file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    copy = make_head("mlp", 6, 7, hidden=5)
    copy.load_state_dict(weights)
    restored = OPTIMIZERS[name](copy)
    restored.load_state_dict(state)
    for module, its_optimizer in ((head, optimizer), (copy, restored)):
        train(module, its_optimizer)
    for key, value in head.state_dict().items():
        assert torch.equal(copy.state_dict()[key], value)


def test_carry_over_does_not_add_parameters() -> None:
    head, other = make_head("linear", 6, 4), nn.Linear(2, 2)
    optimizer = SGD(other.parameters(), lr=0.1)
    carry_over(optimizer, grow(head, 7, rng()))
    assert [id(p) for p in optimizer.param_groups[0]["params"]] == [
        id(p) for p in other.parameters()
    ]
