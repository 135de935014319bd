"""Crops against kornia, rotations against numpy, and the distribution of parameters."""

import kornia
import numpy as np
import pytest
import torch
from torch import Tensor

from sterad.views.geometry import (
    FOLD,
    choose,
    draw_boxes,
    draw_chosen,
    draw_offsets,
    interpolation,
    mirrored_crop,
    mirrored_halves,
    padded_crop,
    resized_crop,
    sixteenfold,
)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.8])
def test_samples_are_chosen_with_their_probability(probability: float) -> None:
    chosen = draw_chosen(20_000, probability, torch.Generator().manual_seed(0))
    assert chosen.dtype == torch.bool
    assert float(chosen.double().mean()) == pytest.approx(probability, abs=0.01)


def test_choose_is_exact() -> None:
    rng = torch.Generator().manual_seed(0)
    x, changed = torch.rand(2, 50, 3, 7, 7, generator=rng)
    chosen = draw_chosen(50, 0.5, rng)
    expected = torch.where(chosen[:, None, None, None], changed, x)
    assert torch.equal(choose(x, changed, chosen), expected)


def flip(x: Tensor, chosen: Tensor) -> Tensor:
    return torch.where(chosen[:, None, None, None], x.flip(-1), x)


def corners(boxes: Tensor) -> Tensor:
    """Return the corners (x, y) in the format of kornia: clockwise from the top left, inclusive."""
    top, left, height, width = boxes
    right, bottom = left + width - 1, top + height - 1
    points = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return torch.stack([torch.stack(point, dim=1) for point in points], dim=1).double()


@pytest.mark.parametrize("side", [8, 28, 32, 64])
@pytest.mark.parametrize("channels", [1, 3])
def test_resized_crop_matches_kornia(side: int, channels: int) -> None:
    x = torch.rand(12, channels, side, side, generator=rng(1))
    boxes = draw_boxes(12, side, side, rng(2))
    expected = kornia.geometry.transform.crop_and_resize(
        x.double(), corners(boxes), (side, side), mode="bilinear", align_corners=True
    )
    found = resized_crop(x, boxes)
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < 1e-6


def test_resized_crop_of_oblong_images_matches_kornia() -> None:
    x = torch.rand(9, 3, 12, 20, generator=rng(1))
    boxes = draw_boxes(9, 12, 20, rng(2))
    expected = kornia.geometry.transform.crop_and_resize(x.double(), corners(boxes), (12, 20))
    assert (resized_crop(x, boxes) - expected).abs().max() < 1e-6


@pytest.mark.parametrize("channels_last", [False, True])
def test_mirrored_boxes_are_flipped_crops(channels_last: bool) -> None:
    x, chosen = torch.rand(12, 3, 16, 20, generator=rng(1)), torch.arange(12) % 3 == 0
    x = x.contiguous(memory_format=torch.channels_last) if channels_last else x
    boxes = draw_boxes(12, 16, 20, rng(2))
    flipped = flip(resized_crop(x, boxes), chosen)
    assert (resized_crop(x, boxes, chosen) - flipped).abs().max() < 1e-6


def test_resized_crop_of_the_whole_image_is_the_image() -> None:
    x = torch.rand(2, 3, 32, 32, generator=rng())
    none, all_ = torch.zeros(2, dtype=torch.long), torch.full((2,), 32)
    assert torch.equal(resized_crop(x, torch.stack([none, none, all_, all_])), x)


def test_interpolation_weighs_at_most_two_neighbors() -> None:
    weights = interpolation(torch.tensor([3, 0]), torch.tensor([7, 7]), 8, torch.float32)
    assert torch.allclose(weights.sum(2), torch.ones(2, 8))
    assert int((weights > 0).sum(2).max()) <= 2
    assert torch.equal(weights[1], torch.eye(8))
    assert weights[0, 0, 3] == 1
    assert weights[0, -1, 7] == 1


def test_boxes_lie_inside_and_follow_area_and_aspect() -> None:
    n, side = 20_000, 256
    top, left, height, width = draw_boxes(n, side, side, rng())
    assert top.dtype == torch.int64
    assert int(top.min()) == 0
    assert int(left.min()) == 0
    assert int((top + height).max()) == side
    assert int((left + width).max()) == side
    area = (height * width).double() / side**2
    aspect = width.double() / height
    assert 0.19 < float(area.min()) < 0.22
    assert float(area.max()) > 0.97
    # Below 3/4 every aspect fits, so there the area is uniform.
    small = area[area < 0.75]
    assert float(small.mean()) == pytest.approx(0.475, abs=0.01)
    assert float(aspect.min()) == pytest.approx(3 / 4, abs=0.02)
    assert float(aspect.max()) == pytest.approx(4 / 3, abs=0.02)
    assert float(aspect.log().mean()) == pytest.approx(0, abs=0.01)
    upper = aspect[area < 0.75].log() > 0.5 * torch.tensor(4 / 3).log()
    assert float(upper.double().mean()) == pytest.approx(0.25, abs=0.02)


def test_box_positions_are_uniform() -> None:
    top, _, height, _ = draw_boxes(20_000, 8, 8, rng())
    room = 8 - height
    assert bool((top <= room).all())
    for free in range(1, 5):
        starts = torch.bincount(top[room == free], minlength=free + 1).double()
        assert torch.allclose(
            starts / starts.sum(), torch.full((free + 1,), 1 / (free + 1)).double(), atol=0.03
        )


def test_the_whole_image_is_a_possible_box() -> None:
    _, _, height, width = draw_boxes(2_000, 8, 8, rng())
    assert bool(((height == 8) & (width == 8)).any())


def test_a_box_that_never_fits_is_the_largest_in_the_center() -> None:
    # All areas are 1, so only a width that rounds to 10 fits, and 10 x 40 is far from 4/3.
    boxes = draw_boxes(5, 40, 10, rng(), min_area=1.0)
    assert boxes.T.tolist() == [[13, 0, 13, 10]] * 5


@pytest.mark.parametrize("side", [8, 28, 32, 64])
def test_padded_crop_is_a_slice_of_the_padded_image(side: int) -> None:
    x = torch.rand(20, 3, side, side, generator=rng(1))
    offsets = draw_offsets(20, 4, rng(2))
    padded = torch.zeros(20, 3, side + 8, side + 8)
    padded[:, :, 4:-4, 4:-4] = x
    found = padded_crop(x, offsets, 4)
    for i, (down, right) in enumerate(offsets.tolist()):
        assert torch.equal(found[i], padded[i, :, down : down + side, right : right + side])


@pytest.mark.parametrize("side", [8, 28, 32])
def test_mirrored_crop_equals_crop_then_flip(side: int) -> None:
    x, offsets = torch.rand(100, 3, side, side, generator=rng(1)), draw_offsets(100, 4, rng(2))
    chosen, original = torch.rand(100, generator=rng(3)) < 0.5, x.clone()
    wanted = flip(padded_crop(x, offsets, 4), chosen)
    last = x.to(memory_format=torch.channels_last)  # contiguous: numpy; channels last: torch
    for given in (x, last):
        assert torch.equal(mirrored_crop(given, offsets, 4, chosen), wanted)
        assert torch.equal(given, original)


def test_offsets_are_uniform_and_differ_within_a_batch() -> None:
    offsets = draw_offsets(9_000, 4, rng())
    for axis in (0, 1):
        share = torch.bincount(offsets[:, axis], minlength=9).double() / 9_000
        assert torch.allclose(share, torch.full((9,), 1 / 9).double(), atol=0.02)
    assert len({tuple(pair) for pair in draw_offsets(74, 4, rng()).tolist()}) > 20


def test_an_empty_batch_stays_empty() -> None:
    x = torch.rand(0, 3, 8, 8)
    assert resized_crop(x, draw_boxes(0, 8, 8, rng())).shape == x.shape
    assert padded_crop(x, draw_offsets(0, 2, rng()), 2).shape == x.shape


def reference(
    image: np.ndarray[tuple[int, ...], np.dtype[np.float32]], g: int, j: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    out, half = image.copy(), image.shape[2] // 2 + image.shape[2] % 2
    if j in (1, 2):
        out[:, :, :half] = out[:, ::-1, :half][:, :, ::-1]
    if j in (2, 3):
        out[:, :, half:] = out[:, ::-1, half:][:, :, ::-1]
    return np.rot90(out, (0, 2, 1, 3)[g], axes=(1, 2))


@pytest.mark.parametrize("side", [7, 8])
def test_sixteenfold_matches_numpy_block_by_block(side: int) -> None:
    x = torch.rand(3, 2, side, side, generator=torch.Generator().manual_seed(0))
    original = x.clone()
    shown = sixteenfold(x)
    assert shown.shape == (FOLD * 3, 2, side, side)
    for g in range(4):
        for j in range(4):
            for i in range(3):
                expected = reference(x[i].numpy(), g, j)
                assert np.array_equal(shown[(4 * g + j) * 3 + i].numpy(), expected)
    assert torch.equal(x, original)


def test_sixteen_variants_of_a_rectangle_have_its_shape() -> None:
    x = torch.rand(3, 2, 6, 10, generator=torch.Generator().manual_seed(0))
    shown = sixteenfold(x)
    assert shown.shape == (FOLD * 3, 2, 6, 10)
    for g in (0, 1):  # by 0 and 180 degrees
        for j in range(4):
            for i in range(3):
                expected = reference(x[i].numpy(), g, j)
                assert np.array_equal(shown[(4 * g + j) * 3 + i].numpy(), expected)
    quarter, three = shown[24:27], shown[36:39]
    torch.testing.assert_close(quarter.flip(2, 3), three)
    assert torch.allclose(quarter.mean((2, 3)), x.mean((2, 3)), atol=0.05)


def test_no_two_variants_are_the_same_and_each_has_the_same_pixels() -> None:
    x = torch.rand(1, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    rows = sixteenfold(x).flatten(1)
    assert len(rows.unique(dim=0)) == FOLD
    assert torch.equal(rows.sort(dim=1).values, x.flatten(1).sort(dim=1).values.expand(FOLD, -1))


@pytest.mark.parametrize("shape", [(2, 3, 4, 6), (1, 1, 5, 5)])
def test_each_half_is_mirrored_in_place(shape: tuple[int, ...]) -> None:
    x = torch.arange(float(np.prod(shape))).view(shape)
    for dim in (2, 3):
        size = shape[dim]
        first = -(-size // 2)
        places = [*range(first - 1, -1, -1), *range(size - 1, first - 1, -1)]
        assert torch.equal(mirrored_halves(x, dim), x.index_select(dim, torch.tensor(places)))
        assert torch.equal(mirrored_halves(mirrored_halves(x, dim), dim), x)
