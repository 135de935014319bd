"""Augmentations: shape, determinism, and unchanged input."""

import pytest
import torch

from sterad.errors import SteradError
from sterad.views import AUGMENTATIONS, Full, NoAugmentation, Partial


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_augmentations_are_registered_by_name() -> None:
    assert list(AUGMENTATIONS) == ["full", "noise", "none", "partial"]
    assert AUGMENTATIONS["full"] is Full


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("side", [8, 28, 32, 64])
def test_a_view_has_the_shape_of_its_images(name: str, n: int, channels: int, side: int) -> None:
    x = torch.rand(n, channels, side, side, generator=rng(1)).requires_grad_()
    original = x.detach().clone()
    view = AUGMENTATIONS[name](flip=True)(x, rng())
    assert view.shape == x.shape
    assert view.dtype == torch.float32
    assert view.grad_fn is None
    assert view.is_contiguous()
    assert torch.equal(x, original)
    if n and name != "none":
        assert 0 <= float(view.min()) <= float(view.max()) <= 1
        assert not torch.equal(view, x)


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
@pytest.mark.parametrize(("height", "width"), [(8, 24), (33, 9)])
def test_images_need_not_be_square(name: str, height: int, width: int) -> None:
    x = torch.rand(5, 3, height, width, generator=rng(1))
    view = AUGMENTATIONS[name](flip=True)(x, rng())
    assert view.shape == x.shape
    assert 0 <= float(view.min()) <= float(view.max()) <= 1


@pytest.mark.parametrize("name", ["full", "partial"])
def test_the_generator_is_the_only_source_of_randomness(name: str) -> None:
    x, augmentation = torch.rand(8, 3, 16, 16, generator=rng(1)), AUGMENTATIONS[name](flip=True)
    state = torch.get_rng_state()
    source = rng(5)
    first, second = augmentation(x, source), augmentation(x, source)
    assert not torch.equal(first, second)
    source = rng(5)
    assert torch.equal(augmentation(x, source), first)
    assert torch.equal(augmentation(x, source), second)
    assert torch.equal(torch.get_rng_state(), state)


def test_partial_shifts_each_image_by_its_own_offset() -> None:
    x = torch.zeros(50, 1, 8, 8)
    x[:, :, 4, 4] = 1
    view = Partial(flip=False)(x, rng())
    places = view.flatten(1).argmax(1)
    rows, columns = places // 8, places % 8
    # A side of 8 has a padding of 2.
    assert set(rows.tolist()) == set(columns.tolist()) == {2, 3, 4, 5, 6}
    assert len({*places.tolist()}) > 10


def test_the_padding_is_four_pixels_from_side_16_on() -> None:
    for side, pad in ((8, 2), (15, 3), (16, 4), (64, 4)):
        black = Partial(flip=False)(torch.ones(300, 1, side, side), rng())[:, 0, side // 2] == 0
        assert int(black.sum(1).max()) == pad


@pytest.mark.parametrize("name", ["full", "partial"])
def test_without_flip_left_stays_left(name: str) -> None:
    ramp = torch.linspace(0, 1, 32).expand(200, 1, 32, 32)
    # Away from the zero padding and the clipping at 1, a ramp that is not mirrored increases.
    for flip, mirrored in ((False, 0.0), (True, 0.5)):
        view = AUGMENTATIONS[name](flip=flip)(ramp, rng())
        falls = view[:, 0, 16, 18] < view[:, 0, 16, 14]
        assert float(falls.double().mean()) == pytest.approx(mirrored, abs=0.1 * flip)


def test_full_shows_at_least_its_smallest_crop() -> None:
    ramp = torch.linspace(0.3, 0.6, 32).expand(200, 1, 32, 32)  # far from both ends of [0, 1]
    shown = [Full(min_crop=least)(ramp, rng())[:, 0, 16] for least in (0.05, 0.2, 1.0)]
    narrow, published, whole = (float((x[:, -1] - x[:, 0]).abs().mean()) for x in shown)
    assert narrow < published - 0.02 < whole - 0.04


def test_full_makes_one_image_in_five_gray() -> None:
    x = torch.rand(2_000, 3, 8, 8, generator=rng(1))
    spread = Full()(x, rng()).std(dim=1).amax(dim=(1, 2))
    assert float((spread < 1e-6).double().mean()) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("name", ["full", "none", "partial"])
def test_vectors_are_returned_unchanged(name: str) -> None:
    x = torch.rand(4, 10)
    assert AUGMENTATIONS[name](flip=True)(x, rng()) is x


def test_no_augmentation_returns_the_images() -> None:
    x = torch.rand(2, 5, 8, 8)
    assert torch.equal(NoAugmentation()(x, rng()), x)


def test_partial_accepts_any_number_of_channels() -> None:
    assert Partial()(torch.rand(2, 5, 8, 8), rng()).shape == (2, 5, 8, 8)
    with pytest.raises(SteradError, match="5 channels"):
        Full()(torch.rand(2, 5, 8, 8), rng())


def test_what_is_not_a_batch_of_float_images_raises() -> None:
    with pytest.raises(SteradError, match=r"shape \(3, 8, 8\)"):
        Full()(torch.rand(3, 8, 8), rng())
    with pytest.raises(SteradError, match=r"uint8"):
        Full()(torch.zeros(1, 3, 8, 8, dtype=torch.uint8), rng())
    for least in (0.0, -1.0, 1.5):
        with pytest.raises(SteradError, match="min_crop"):
            Full(min_crop=least)


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_images_may_be_on_another_device_than_the_generator(name: str) -> None:
    x = torch.empty(4, 3, 8, 8, device="meta")
    view = AUGMENTATIONS[name](flip=True)(x, rng())
    assert view.device == x.device
    assert view.shape == x.shape
