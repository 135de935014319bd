import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterad.data.area import area_resize, area_shares
from sterad.errors import SteradError


@given(side=st.integers(1, 40), size=st.integers(1, 40))
def test_each_new_pixel_is_a_mean_and_each_old_one_counts_alike(side: int, size: int) -> None:
    shares = area_shares(side, size)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(shares.sum(axis=0), size / side, rtol=1e-4)


def test_whole_factors_are_the_means_of_blocks() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 24, 24), dtype=np.uint8)
    for size in (12, 8, 4):
        blocks = images.reshape(5, 3, size, 24 // size, size, 24 // size).mean(axis=(3, 5))
        np.testing.assert_array_equal(area_resize(images, size), np.floor(blocks + 0.5 + 1e-6))


def test_upwards_repeats_and_keeps_the_mean() -> None:
    images = np.array([[[[0, 100], [200, 40]]]], np.uint8)
    larger = area_resize(images, 4)
    np.testing.assert_array_equal(larger, images.repeat(2, axis=2).repeat(2, axis=3))
    assert abs(area_resize(images, 3).mean() - images.mean()) < 1


def test_the_same_size_is_the_same_array() -> None:
    images = np.zeros((1, 1, 8, 8), np.uint8)
    assert area_resize(images, 8) is images
    assert area_resize(images, None) is images


def test_refusals() -> None:
    with pytest.raises(SteradError, match="image_size 33 is more than 4 times the 8 pixels"):
        area_resize(np.zeros((1, 1, 8, 8), np.uint8), 33)
    with pytest.raises(SteradError, match="feature vectors"):
        area_resize(np.zeros((3, 7), np.float32), 8)
