from typing import Any

import numpy as np
import pytest

from sterad.data import Dataset, Synthetic
from sterad.errors import SteradError


def nearest_mean_accuracy(data: Dataset) -> float:
    train = data.train_images.reshape(len(data.train_images), -1) / 255.0
    test = data.test_images.reshape(len(data.test_images), -1) / 255.0
    means = np.stack([train[data.train_labels == c].mean(0) for c in range(data.classes)])
    nearest = ((test[:, None] - means) ** 2).sum(2).argmin(1)
    return float((nearest == data.test_labels).mean())


def test_shapes_follow_the_fields() -> None:
    data = Synthetic(classes=3, per_class=7, test_per_class=2, image_size=9, channels=3).load()
    assert data.train_images.shape == (21, 3, 9, 9)
    assert data.test_images.shape == (6, 3, 9, 9)
    assert np.bincount(data.train_labels).tolist() == [7, 7, 7]
    assert not data.flip


def test_images_need_not_be_square() -> None:
    wide = Synthetic(image_size=5, image_width=9, noise=0.0).load()
    assert wide.input_shape == (1, 5, 9)
    square = Synthetic(image_size=9, noise=0.0).load()
    np.testing.assert_array_equal(wide.train_images, square.train_images[:, :, ::2])


def test_images_depend_on_the_data_seed_only() -> None:
    first, again, other = (Synthetic(data_seed=seed).load() for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.train_images, again.train_images)
    np.testing.assert_array_equal(first.test_images, again.test_images)
    assert (first.train_images != other.train_images).mean() > 0.5


def test_classes_are_separable_but_not_trivially() -> None:
    assert 0.8 < nearest_mean_accuracy(Synthetic().load()) < 0.99
    assert nearest_mean_accuracy(Synthetic(noise=0.0).load()) == 1.0
    assert nearest_mean_accuracy(Synthetic(noise=2.0).load()) < 0.4


def test_prototypes_are_smooth() -> None:
    image = Synthetic(noise=0.0, image_size=64, per_class=1).load().train_images.astype(float)
    assert np.abs(np.diff(image, axis=3)).max() < 16


def test_images_generated_in_chunks_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sterad.data.synthetic.PIXELS_PER_CHUNK", 64 * 7)
    data = Synthetic(classes=2, per_class=10).load()
    assert (data.train_images.std(axis=(1, 2, 3)) > 0).all()
    assert nearest_mean_accuracy(data) > 0.9


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("classes", 0, "an integer from 1 to 100,000"),
        ("per_class", 0, "an integer from 1 to 1,000,000"),
        ("test_per_class", 0, "an integer from 1 to 1,000,000"),
        ("image_size", 0, "an integer from 1 to 4,096"),
        ("channels", -1, "an integer from 1 to 64"),
        ("noise", -1.0, "a number in [0, 1e+06]"),
        ("noise", np.nan, "a number in [0, 1e+06]"),
        ("noise", np.inf, "a number in [0, 1e+06]"),
        ("data_seed", -1, "an integer from 0 to 4,294,967,295"),
    ],
)
def test_invalid_fields_raise(name: str, value: Any, wanted: str) -> None:
    with pytest.raises(SteradError) as refused:
        Synthetic(**{name: value})
    assert str(refused.value) == f"{name} {value} is out of range: give {wanted}"


def test_too_many_images_raise_before_generation() -> None:
    message = r"^1,020,000 synthetic images of 1000x1000 pixels need more than 8 GiB: give fewer"
    with pytest.raises(SteradError, match=message):
        Synthetic(per_class=1_000, test_per_class=20, classes=1_000, image_size=1_000)
