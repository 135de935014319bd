"""RandAugment against PIL and against loops over images and pixels."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from sterad.views import rand_augment
from sterad.views.rand_augment import OPERATIONS, RandAugment

SHAPES = ("rotate", "shear_x", "shear_y", "shift_x", "shift_y")


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def byte_images(n: int = 6, channels: int = 3, height: int = 9, width: int = 12) -> Tensor:
    """Return images of whole levels; the first are constant or of few levels."""
    x = torch.randint(0, 256, (n, channels, height, width), generator=rng(1)) / 255
    x[0], x[1] = 0.2, (x[1] * 3).round() / 3
    x[2] = 0.3 + 0.2 * x[2]
    return (x * 255).round() / 255


def to_pil(image: Tensor) -> Image.Image:
    return Image.fromarray((image * 255).round().byte().permute(1, 2, 0).numpy())


def from_pil(image: Image.Image) -> Tensor:
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return pixels.view(image.height, image.width, 3).permute(2, 0, 1) / 255


def by_pil(name: str, image: Image.Image, amount: float) -> Image.Image:
    factor = 1 + 0.9 * amount
    if name == "autocontrast":
        return ImageOps.autocontrast(image)
    if name == "equalize":
        return ImageOps.equalize(image)
    if name == "posterize":
        return ImageOps.posterize(image, 8 - round(4 * abs(amount)))
    if name == "solarize":
        return ImageOps.solarize(image, math.ceil(255 * (1 - abs(amount))))
    enhance: dict[str, Any] = {
        "brightness": ImageEnhance.Brightness,
        "contrast": ImageEnhance.Contrast,
        "saturation": ImageEnhance.Color,
        "sharpness": ImageEnhance.Sharpness,
    }
    enhanced: Image.Image = enhance[name](image).enhance(factor)
    return enhanced


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        *[("equalize", 0.0), ("posterize", 0.0), ("solarize", 0.0), ("autocontrast", 1.0)],
        *[("brightness", 1.0), ("saturation", 2.0), ("sharpness", 2.0), ("contrast", 2.0)],
    ],
)
@pytest.mark.parametrize("amount", [-0.5, 0.25, 1.0])
def test_colors_match_pil(name: str, levels: float, amount: float) -> None:
    x = byte_images()
    found = getattr(rand_augment, name)(x, torch.full((len(x),), amount))
    expected = torch.stack([from_pil(by_pil(name, to_pil(one), amount)) for one in x])
    assert (found - expected).abs().max() * 255 <= levels + 1e-3


def source_of(name: str, amount: float, row: float, column: float, h: int, w: int) -> list[float]:
    """Return where a pixel comes from; rows and columns are counted from the center, in pixels."""
    if name == "rotate":
        cos, sin = math.cos(math.radians(30 * amount)), math.sin(math.radians(30 * amount))
        return [sin * column + cos * row, cos * column - sin * row]
    moves = {
        "shear_x": [row, column + 0.3 * amount * row],
        "shear_y": [row + 0.3 * amount * column, column],
        "shift_x": [row, column + amount * 150 / 331 * w],
        "shift_y": [row + amount * 150 / 331 * h, column],
    }
    return moves[name]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("amount", [-0.5, 1.0])
def test_shapes_equal_loops_over_pixels(name: str, amount: float) -> None:
    x = byte_images(3, height=8, width=11)
    (h, w), expected = x.shape[2:], torch.zeros_like(x)
    for i in range(h):
        for j in range(w):
            middle = (h - 1) / 2, (w - 1) / 2
            row, column = source_of(name, amount, i - middle[0], j - middle[1], h, w)
            row, column = row + middle[0], column + middle[1]
            for a in (math.floor(row), math.floor(row) + 1):
                for b in (math.floor(column), math.floor(column) + 1):
                    if 0 <= a < h and 0 <= b < w:
                        weight = (1 - abs(row - a)) * (1 - abs(column - b))
                        expected[:, :, i, j] += weight * x[:, :, a, b]
    found = getattr(rand_augment, name)(x, torch.full((3,), amount))
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_each_image_has_its_own_operations(channels: int) -> None:
    x = byte_images(40, channels)
    drawn = torch.randint(len(OPERATIONS), (3, 40), generator=rng())
    amounts = torch.rand((3, 40), generator=rng(2)) * 2 - 1
    found, before = rand_augment.apply(x, drawn, amounts), x.clone()
    for i in range(40):
        one = x[i : i + 1]
        for index, amount in zip(drawn[:, i].tolist(), amounts[:, i], strict=True):
            one = OPERATIONS[index](one, amount[None])
        assert torch.allclose(found[i : i + 1], one, atol=1e-5)
    assert torch.equal(x, before)
    assert 0 <= float(found.min()) <= float(found.max()) <= 1


def test_operations_are_drawn_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Counter[int]()

    def count(x: Tensor, indices: Tensor, amounts: Tensor) -> Tensor:
        drawn.update(indices.flatten().tolist())
        assert set(amounts.flatten().tolist()) == {-0.5, 0.5}
        return x

    monkeypatch.setattr(rand_augment, "apply", count)
    RandAugment()(torch.zeros(14_000, 1, 1, 1), rng())
    assert len(drawn) == 14
    assert all(abs(number - 3000) < 300 for number in drawn.values())


def test_strength_zero_leaves_most_operations_without_effect() -> None:
    x = byte_images()
    for operation in OPERATIONS:
        if operation.__name__ not in ("autocontrast", "equalize", "solarize"):
            found = operation(x, torch.zeros(len(x)))
            assert torch.allclose(found, x, atol=1e-5), operation.__name__


def test_the_seed_decides_the_view() -> None:
    x = byte_images(20)
    first, second, other = (RandAugment()(x, rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert RandAugment()(x.double(), rng()).dtype == torch.float64
