"""Flatten: pixels as features."""

import torch

from sterad.encoders import ENCODERS, build_network


def test_the_features_are_the_pixels() -> None:
    x = torch.rand(3, 2, 4, 4)
    encoder = ENCODERS["flatten"]((2, 4, 4), 64)
    assert encoder.features == 32
    assert torch.equal(encoder(x), x.reshape(3, 32))


def test_with_a_linear_head_the_network_is_a_linear_classifier() -> None:
    network = build_network("flatten", (5,), 1, "linear", 4, torch.Generator())
    weight, bias = network.parameters()
    x = torch.rand(3, 5)
    assert torch.allclose(network(x), x @ weight.T + bias)
