"""Heads by kind."""

import pytest
import torch
from torch import nn

from sterad.encoders.heads import last_layer, make_head
from sterad.errors import SteradError


@pytest.mark.parametrize(("kind", "outputs"), [("mlp", 5), ("linear", 5), ("none", 12)])
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


def test_what_makes_no_head_is_refused() -> None:
    with pytest.raises(SteradError, match="unknown head 'tanh': choose one of mlp, linear, none"):
        make_head("tanh", 12, 5)
    with pytest.raises(SteradError, match="the 12 features are the outputs, not 5"):
        make_head("none", 12, 5)
    with pytest.raises(SteradError, match="to 0 outputs"):
        make_head("linear", 12, 0)
