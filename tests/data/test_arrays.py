from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sterad.data.arrays import area_resize, area_weights, as_inputs, as_labels
from sterad.errors import SteradError

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (5, 3, 8, 8), dtype=np.uint8)


@pytest.mark.parametrize(
    "given",
    [
        BYTES,
        BYTES / 255,
        (BYTES / 255).astype(np.float32),
        np.moveaxis(BYTES, 1, 3),
        torch.from_numpy(BYTES),
        torch.from_numpy(BYTES).float().div(255).requires_grad_(),
        (BYTES / 255).tolist(),
    ],
)
def test_every_format_of_an_image_gives_the_same_bytes(given: object) -> None:
    images = as_inputs(given)
    assert images.dtype == np.uint8
    assert images.flags.c_contiguous
    np.testing.assert_array_equal(images, BYTES)


@pytest.mark.parametrize("shape", [(5, 8, 12), (5, 1, 8, 12), (5, 8, 12, 1), (5, 3, 8, 12)])
def test_images_need_not_be_square(shape: tuple[int, ...]) -> None:
    given = RNG.integers(0, 256, shape, dtype=np.uint8)
    images = as_inputs(given)
    assert images.shape[2:] == (8, 12)
    np.testing.assert_array_equal(images.reshape(given.shape), given)
    last = np.moveaxis(np.zeros((2, 3, 5, 9), np.uint8), 1, 3)
    assert as_inputs(last).shape == (2, 3, 5, 9)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((2, 1, 1, 1), (1, 1, 1)), ((2, 1, 1, 3), (3, 1, 1)), ((2, 3, 1, 1), (3, 1, 1))],
)
def test_of_two_readings_the_square_one_counts(
    shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert as_inputs(np.zeros(shape, np.uint8)).shape[1:] == expected


@pytest.mark.parametrize("shape", [(5, 8, 8), (5, 1, 8, 8), (5, 8, 8, 1)])
def test_gray_images_get_a_channel(shape: tuple[int, ...]) -> None:
    images = as_inputs(BYTES[:, 0].reshape(shape))
    np.testing.assert_array_equal(images, BYTES[:, :1])


def test_half_precision_tensors() -> None:
    assert as_inputs(torch.ones(2, 8, 8, dtype=torch.bfloat16)).min() == 255


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_vectors_become_float32(dtype: type) -> None:
    vectors = as_inputs(np.array([[0, 300, 2], [1, 2, 3]]).astype(dtype))
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors[1], [1, 2, 3])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.full((2, 8, 8), 1.5), r"contain 1.5 at index 0 and must be in \[0, 1\]"),
        (np.full((2, 8, 8), -0.1), "contain -0.1"),
        (np.full((2, 8, 8), np.nan), "contain nan at index 0"),
        (np.array([np.zeros((8, 8)), np.full((8, 8), np.inf)]), "contain inf at index 1"),
        (np.zeros((2, 8, 8), np.int64), "int64.*give uint8 from 0 to 255"),
        (np.zeros((2, 8, 8), np.int32), r"int32.*convert .* with astype\(np.uint8\)"),
        (np.zeros((2, 8, 8), np.uint16), "uint16.*divide 16-bit values by 65535"),
        (np.zeros((2, 8, 8), bool), r"bool.*astype\(float\)"),
        (np.zeros((2, 3, 3, 3), np.uint8), "channels can be first or last"),
        (np.zeros((2, 3, 8, 3), np.uint8), "channels can be first or last"),
        (np.zeros((2, 1, 8, 3), np.uint8), "channels can be first or last"),
        (np.zeros((2, 4, 8, 6), np.uint8), r"four channels .* alpha.*x\[:, :3\] if all"),
        (np.zeros((2, 8, 6, 4), np.uint8), r"four channels .* alpha.*x\[..., :3\] if all"),
        (np.zeros((2, 2, 8, 8), np.uint8), r"shape \(2, 2, 8, 8\).*1 or 3 channels"),
        (np.zeros(7), r"shape \(7,\)"),
        ([[1.0, 2.0], [3.0]], "cannot be converted to one array"),
        (np.array([[1.0, 2.0], [np.nan, 3.0]]), "contain nan at index 1"),
        (np.array([[1e300]]), r"contain 1e\+300 at index 0"),
        (np.array([["a", "b"]]), "give numbers"),
    ],
)
def test_invalid_inputs_raise(given: Any, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        as_inputs(given)


def test_labels_of_any_integer_type_become_int64() -> None:
    for values in ([1, 2], torch.tensor([1, 2]), np.array([1, 2], np.uint8)):
        labels = as_labels(values)
        assert labels.dtype == np.int64
        assert labels.tolist() == [1, 2]


@given(side=st.integers(1, 40), size=st.integers(1, 40))
def test_area_resize_weighs_all_pixels_equally(side: int, size: int) -> None:
    weights = area_weights(side, size)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(weights.sum(axis=0), size / side, rtol=1e-4)


def test_area_resize_by_integer_factors_averages_blocks() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 24, 24), dtype=np.uint8)
    for size in (12, 8, 4):
        blocks = images.reshape(5, 3, size, 24 // size, size, 24 // size).mean(axis=(3, 5))
        np.testing.assert_array_equal(area_resize(images, size), np.floor(blocks + 0.5 + 1e-6))


def test_area_resize_upwards_keeps_the_mean() -> None:
    images = np.array([[[[0, 100], [200, 40]]]], np.uint8)
    larger = area_resize(images, 4)
    np.testing.assert_array_equal(larger, images.repeat(2, axis=2).repeat(2, axis=3))
    assert abs(area_resize(images, 3).mean() - images.mean()) < 1


def test_area_resize_of_rectangles_averages_blocks() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 24, 12), dtype=np.uint8)
    blocks = images.reshape(5, 3, 6, 4, 4, 3).mean(axis=(3, 5))
    np.testing.assert_array_equal(area_resize(images, (6, 4)), np.floor(blocks + 0.5 + 1e-6))
    assert area_resize(images, (24, 12)) is images
    square = area_resize(images, 12)
    np.testing.assert_array_equal(square, area_resize(images, (12, 12)))
    assert square.shape == (5, 3, 12, 12)


def test_area_resize_to_the_same_size_returns_the_array() -> None:
    images = np.zeros((1, 1, 8, 8), np.uint8)
    assert area_resize(images, 8) is images
    assert area_resize(images, None) is images


def test_invalid_sizes_raise() -> None:
    with pytest.raises(SteradError, match="image_size 33 is more than 4 times the 8 pixels"):
        area_resize(np.zeros((1, 1, 8, 8), np.uint8), 33)
    with pytest.raises(SteradError, match="image_width 50 is more than 4 times the 12 pixels"):
        area_resize(np.zeros((1, 1, 8, 12), np.uint8), (8, 50))
    with pytest.raises(SteradError, match="feature vectors"):
        area_resize(np.zeros((3, 7), np.float32), 8)
