"""Heads by kind."""

import pytest
import torch
from torch import nn

from sterad.encoders.growth import carry_over, grow
from sterad.encoders.heads import frozen_layer, last_layer, make_head
from sterad.errors import SteradError


@pytest.mark.parametrize(
    ("kind", "outputs"), [("mlp", 5), ("linear", 5), ("cosine", 5), ("none", 12)]
)
def test_a_head_maps_inputs_to_outputs(kind: str, outputs: int) -> None:
    assert make_head(kind, 12, outputs)(torch.rand(3, 12)).shape == (3, outputs)


def test_the_layers_of_each_kind() -> None:
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


def test_a_cosine_head_does_not_see_lengths_and_can_grow() -> None:
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


def test_a_frozen_layer_draws_nothing_and_learns_nothing() -> None:
    rows, state = torch.randn(4, 3), torch.get_rng_state()
    layer, x = frozen_layer(rows), torch.ones(2, 3, requires_grad=True)
    assert torch.equal(torch.get_rng_state(), state)
    layer(x).sum().backward()
    assert torch.allclose(x.grad, rows.sum(0).expand(2, 3))  # type: ignore[arg-type]
    assert layer.weight.grad is None
    assert (layer.in_features, layer.out_features) == (3, 4)
    assert layer.bias is None
    rows.zero_()
    assert bool(layer.weight.all()), "the layer has rows of its own"


def test_what_makes_no_head_is_refused() -> None:
    with pytest.raises(
        SteradError, match="unknown head 'tanh': choose one of mlp, linear, cosine, none"
    ):
        make_head("tanh", 12, 5)
    with pytest.raises(SteradError, match="the 12 features are the outputs, not 5"):
        make_head("none", 12, 5)
    with pytest.raises(SteradError, match="to 0 outputs"):
        make_head("linear", 12, 0)
