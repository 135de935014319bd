"""Color operators against kornia, which follows PIL, with equal factors."""

import itertools
import math
from collections.abc import Callable

import kornia
import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.views import color

NAMES = ("brightness", "contrast", "saturation", "hue")


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(side: int = 8, n: int = 16, channels: int = 3) -> Tensor:
    """Return random images, and black, white, gray, pure and tied colors, the edge cases of hue."""
    x = torch.rand(n, channels, side, side, generator=rng(9))
    x[0], x[1], x[2] = 0, 1, 0.5
    x[3, 0], x[4, -1] = 1, 0
    x[5] = x[5].round()
    x[6] = (x[6] * 4).round() / 4
    x[7] = 0.5 + 1e-4 * x[7]
    return x


def _kornia(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    enhance = kornia.enhance
    operators: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "brightness": enhance.adjust_brightness_accumulative,
        "contrast": enhance.adjust_contrast_with_mean_subtraction,
        "saturation": enhance.adjust_saturation_with_gray_subtraction,
        "hue": lambda x, turns: enhance.adjust_hue(x, turns * 2 * math.pi),
    }
    return operators[name]


@pytest.mark.parametrize("side", [8, 28, 32, 64])
@pytest.mark.parametrize("name", NAMES)
def test_operators_match_kornia(name: str, side: int) -> None:
    x = images(side)
    factor = color.draw_jitter(16, rng(1))[name]
    original = x.clone()
    found = getattr(color, name)(x, factor)
    assert found.dtype == torch.float32
    assert (found - _kornia(name)(x.double(), factor.double())).abs().max() < 1e-6
    assert 0 <= float(found.min()) <= float(found.max()) <= 1
    assert torch.equal(x, original)


@pytest.mark.parametrize("turns", [-0.5, -0.4, -1 / 6, 0.0, 1 / 3, 0.5])
def test_hue_matches_kornia_on_the_whole_circle(turns: float) -> None:
    x, factor = images(), torch.full((16,), turns)
    expected = _kornia("hue")(x.double(), factor.double())
    assert (color.hue(x, factor) - expected).abs().max() < 1e-6


def test_a_third_of_a_turn_takes_red_to_green() -> None:
    red = torch.tensor([0.75, 0.25, 0.25]).view(1, 3, 1, 1)
    turned = color.hue(red, torch.tensor([1 / 3])).flatten()
    assert turned.tolist() == pytest.approx([0.25, 0.75, 0.25], abs=1e-6)


def test_gray_matches_kornia_and_changes_only_the_chosen() -> None:
    x = images()
    found = color.gray(x, torch.arange(16) % 2 == 0)
    expected = kornia.color.rgb_to_grayscale(x.double()).expand(-1, 3, -1, -1)
    assert (found[::2] - expected[::2]).abs().max() < 1e-6
    assert torch.equal(found[1::2], x[1::2])


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_jitter_matches_kornia(order: tuple[int, ...]) -> None:
    x = images()
    expected = kornia.augmentation.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        params = expected.forward_parameters(x.shape)
    params = {name: v.double() if v.is_floating_point() else v for name, v in params.items()}
    params["order"] = torch.tensor(order)
    chosen = params["batch_prob"] > 0.5
    assert 0 < int(chosen.sum()) < 16
    factors = {name: params[f"{name}_factor"].clone() for name in NAMES}
    for name, values in factors.items():
        values[~chosen] = 0.0 if name == "hue" else 1.0
    found = color.jitter(x, {NAMES[i]: factors[NAMES[i]] for i in order})
    assert (found - expected(x.double(), params=params)).abs().max() < 1e-6
    assert torch.allclose(found[~chosen], x[~chosen], rtol=0, atol=1e-6)


def test_jitter_draws_its_published_ranges() -> None:
    drawn = color.draw_jitter(20_000, rng())
    for name in NAMES[:3]:
        factor = drawn[name]
        assert float(factor.min()) == pytest.approx(0.6, abs=0.01)
        assert float(factor.max()) == pytest.approx(1.4, abs=0.01)
        assert float(factor.mean()) == pytest.approx(1.0, abs=0.01)
    assert float(drawn["hue"].min()) == pytest.approx(-0.1, abs=0.001)
    assert float(drawn["hue"].max()) == pytest.approx(0.1, abs=0.001)
    chosen = drawn["hue"] != 0
    assert float(chosen.double().mean()) == pytest.approx(0.8, abs=0.01)
    for name in NAMES[:3]:
        assert torch.equal(drawn[name][~chosen], torch.ones(int((~chosen).sum())))
    pairs = torch.stack([drawn["brightness"], drawn["contrast"]])[:, chosen]
    assert float(pairs.corrcoef()[0, 1].abs()) < 0.03


def test_every_order_is_drawn() -> None:
    source = rng()
    assert len({tuple(color.draw_jitter(1, source)) for _ in range(400)}) == 24


def test_one_channel_has_only_brightness_and_contrast() -> None:
    x = images(channels=1)
    factor = torch.full((16,), 0.7)
    assert torch.equal(color.saturation(x, factor), x)
    assert torch.equal(color.hue(x, 0.1 * factor), x)
    assert torch.equal(color.gray(x, factor > 0), x)
    blended = 0.7 * x + 0.3 * x.mean((1, 2, 3), keepdim=True)
    assert torch.allclose(color.contrast(x, factor), blended, atol=1e-6)
    assert torch.allclose(color.brightness(x, factor), 0.7 * x)


@pytest.mark.parametrize("name", NAMES[1:])
def test_other_channel_counts_raise(name: str) -> None:
    with pytest.raises(SteradError, match=r"2 channels: give 1 or 3"):
        getattr(color, name)(torch.rand(4, 2, 8, 8), torch.ones(4))
