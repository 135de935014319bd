"""The encoders `mlp` and `flatten`."""

import pytest
import torch
from torch import nn

from sterad.encoders import ENCODERS, MLP, Flatten, build_network


@pytest.mark.parametrize("shape", [(7,), (1, 8, 8), (3, 4, 4)])
def test_mlp_takes_vectors_and_images(shape: tuple[int, ...]) -> None:
    encoder = ENCODERS["mlp"](shape, 20)
    assert encoder.features == 160
    features = encoder(torch.rand(5, *shape)).detach()
    assert features.shape == (5, 160)
    assert float(features.min()) == 0


def test_mlp_against_plain_matrix_products() -> None:
    encoder = MLP((1, 2, 2), 1).double()
    first, second = (layer for layer in encoder.modules() if isinstance(layer, nn.Linear))
    x = torch.randn(3, 1, 2, 2, dtype=torch.float64)
    hidden = (x.view(3, 4) @ first.weight.T + first.bias).clamp(min=0)
    expected = (hidden @ second.weight.T + second.bias).clamp(min=0)
    assert torch.allclose(encoder(x), expected)


def test_flatten_returns_the_pixels() -> None:
    x = torch.rand(3, 2, 4, 4)
    encoder = ENCODERS["flatten"]((2, 4, 4), 64)
    assert encoder.features == 32
    assert torch.equal(encoder(x), x.reshape(3, 32))


def test_flatten_with_a_linear_head_is_a_linear_classifier() -> None:
    network = build_network(lambda: Flatten((5,), 1), "linear", 4, torch.Generator())
    weight, bias = network.parameters()
    x = torch.rand(3, 5)
    assert torch.allclose(network(x), x @ weight.T + bias)
