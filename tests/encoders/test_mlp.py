"""The two-layer encoder."""

import pytest
import torch
from torch import nn

from sterad.encoders import ENCODERS, MLP


@pytest.mark.parametrize("shape", [(7,), (1, 8, 8), (3, 4, 4)])
def test_vectors_and_images_alike(shape: tuple[int, ...]) -> None:
    encoder = ENCODERS["mlp"](shape, 20)
    assert encoder.features == 160
    features = encoder(torch.rand(5, *shape)).detach()
    assert features.shape == (5, 160)
    assert float(features.min()) == 0


def test_it_is_two_layers_by_hand() -> None:
    encoder = MLP((1, 2, 2), 1).double()
    first, second = (layer for layer in encoder.modules() if isinstance(layer, nn.Linear))
    x = torch.randn(3, 1, 2, 2, dtype=torch.float64)
    hidden = (x.view(3, 4) @ first.weight.T + first.bias).clamp(min=0)
    expected = (hidden @ second.weight.T + second.bias).clamp(min=0)
    assert torch.allclose(encoder(x), expected)
