"""The table of encoders, and the shapes that they refuse."""

import pytest
import torch
from torch import Tensor, nn

from sterad.encoders import ENCODERS, Encoder
from sterad.errors import SteradError


def test_the_encoders_have_names() -> None:
    assert list(ENCODERS) == ["flatten", "mlp", "preact-resnet18", "resnet18", "resnet18-7x7"]


@pytest.mark.parametrize("name", list(ENCODERS))
@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((3, 32, 16), r"32 × 16 pixels are not square"),
        ((0, 32, 32), r"\(0, 32, 32\) hold nothing"),
        ((-1, 32, 32), r"\(-1, 32, 32\) hold nothing"),
        ((32, 32), r"\(32, 32\) are neither images nor vectors"),
        ((), r"\(\) are neither images nor vectors"),
    ],
)
def test_wrong_shapes_are_refused(name: str, shape: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(SteradError, match=sentence):
        ENCODERS[name](shape, 2)


@pytest.mark.parametrize("name", ["resnet18", "resnet18-7x7", "preact-resnet18"])
def test_a_resnet_refuses_vectors_and_tiny_images(name: str) -> None:
    with pytest.raises(SteradError, match="use the mlp encoder"):
        ENCODERS[name]((64,), 2)
    with pytest.raises(SteradError, match="7 pixels a side are too small"):
        ENCODERS[name]((3, 7, 7), 2)


@pytest.mark.parametrize("name", list(ENCODERS))
def test_a_width_is_positive(name: str) -> None:
    with pytest.raises(SteradError, match="width 0"):
        ENCODERS[name]((1, 8, 8), 0)


@pytest.mark.parametrize("name", list(ENCODERS))
def test_encoders_can_be_laid_out_without_memory(name: str) -> None:
    with torch.device("meta"):
        encoder = ENCODERS[name]((3, 32, 32), 64)
        features = encoder(torch.empty(2, 3, 32, 32))
    assert all(parameter.is_meta for parameter in encoder.parameters())
    assert features.shape == (2, encoder.features)


def test_an_encoder_is_a_module_that_says_its_features() -> None:
    class Mean(Encoder):
        features = 1

        def forward(self, x: Tensor) -> Tensor:
            return x.flatten(1).mean(1, keepdim=True)

    assert isinstance(Mean(), nn.Module)
    with pytest.raises(TypeError, match="abstract"):
        Encoder()  # type: ignore[abstract]
