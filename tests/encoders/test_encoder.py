"""The registry of encoders, and invalid arguments."""

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import ENCODERS, Encoder
from sterad.errors import SteradError


def test_registered_names() -> None:
    assert list(ENCODERS) == ["flatten", "mlp", "preact-resnet18", "resnet18", "resnet18-7x7"]


@pytest.mark.parametrize("name", list(ENCODERS))
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 32, 32), r"\(0, 32, 32\) are empty"),
        ((-1, 32, 32), r"\(-1, 32, 32\) are empty"),
        ((32, 32), r"\(32, 32\) are neither images nor vectors"),
        ((), r"\(\) are neither images nor vectors"),
    ],
)
def test_invalid_shapes_raise(name: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        ENCODERS[name](shape, 2)


@pytest.mark.parametrize("name", ["resnet18", "resnet18-7x7", "preact-resnet18"])
def test_resnet_raises_for_vectors_and_small_images(name: str) -> None:
    with pytest.raises(SteradError, match="use the mlp encoder"):
        ENCODERS[name]((64,), 2)
    with pytest.raises(SteradError, match="7 × 7 pixels are too small"):
        ENCODERS[name]((3, 7, 7), 2)


@pytest.mark.parametrize("name", list(ENCODERS))
def test_width_must_be_positive(name: str) -> None:
    with pytest.raises(SteradError, match="width 0"):
        ENCODERS[name]((1, 8, 8), 0)


@pytest.mark.parametrize("name", list(ENCODERS))
def test_encoders_on_meta(name: str) -> None:
    with torch.device("meta"):
        encoder = ENCODERS[name]((3, 32, 32), 64)
        features = encoder(torch.empty(2, 3, 32, 32))
    assert all(parameter.is_meta for parameter in encoder.parameters())
    assert features.shape == (2, encoder.features)


@pytest.mark.parametrize("name", list(ENCODERS))
@pytest.mark.parametrize("size", [(8, 12), (33, 16), (40, 90)])
def test_images_need_not_be_square(name: str, size: tuple[int, int]) -> None:
    encoder = ENCODERS[name]((3, *size), 2).eval()
    x = torch.rand(2, 3, *size)
    assert encoder(x).shape == (2, encoder.features)
    transposed = ENCODERS[name]((3, *size[::-1]), 2)
    assert transposed.features == encoder.features


def test_encoder_is_an_abstract_module() -> None:
    class Mean(Encoder):
        features = 1

        def forward(self, x: Tensor) -> Tensor:
            return x.flatten(1).mean(1, keepdim=True)

    assert isinstance(Mean(), nn.Module)
    with pytest.raises(TypeError, match="abstract"):
        Encoder()  # type: ignore[abstract]
