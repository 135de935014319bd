import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from sterad.data import Dataset
from sterad.errors import SteradError


def parts(**changes: Any) -> dict[str, Any]:
    images = np.arange(4 * 3 * 8 * 8, dtype=np.int64).astype(np.uint8).reshape(4, 3, 8, 8)
    labels = np.array([0, 1, 2, 1])
    return {
        "name": "mine",
        "train_images": images,
        "train_labels": labels,
        "test_images": images[:2],
        "test_labels": labels[:2],
        "class_names": ("a", "b", "c"),
        "flip": True,
    } | changes


def test_classes_and_input_shape() -> None:
    data = Dataset(**parts())
    assert (data.classes, data.input_shape) == (3, (3, 8, 8))


def test_images_need_not_be_square() -> None:
    images = np.zeros((4, 3, 8, 12), np.uint8)
    assert Dataset(**parts(train_images=images, test_images=images[:2])).input_shape == (3, 8, 12)


def test_domains() -> None:
    data = Dataset(**parts(domains=np.array([1, 0, 1, 0]), domain_names=("indoors", "outdoors")))
    assert data.domain_names == ("indoors", "outdoors")
    assert Dataset(**parts()).domains is None


def test_feature_vectors() -> None:
    vectors = np.zeros((4, 5), dtype=np.float32)
    assert Dataset(**parts(train_images=vectors, test_images=vectors[:2])).input_shape == (5,)


def test_dataset_is_frozen() -> None:
    data = Dataset(**parts())
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_names": ()}, "has no classes"),
        ({"train_labels": np.array([0, 1, 3, -1])}, "train labels contain 3 at index 2.*0 to 2"),
        ({"test_labels": np.array([0, -1])}, "test labels contain -1 at index 1"),
        ({"train_labels": np.array([0, 1, 2])}, "3 train labels for 4 images"),
        ({"train_labels": np.zeros(4, np.int32)}, r"train labels are int32 of shape \(4,\)"),
        ({"train_labels": [0, 1, 2, 1]}, "train_labels is of type list"),
        ({"train_images": [[1.0]]}, "train_images is of type list"),
        ({"train_images": np.zeros((4, 3, 8, 8))}, "train images are float64"),
        ({"train_images": np.zeros((4, 3, 8, 9), np.uint8)}, r"\(3, 8, 9\).*\(3, 8, 8\)"),
        ({"test_images": np.zeros((2, 3, 9, 9), np.uint8)}, r"\(3, 8, 8\).*\(3, 9, 9\)"),
        (
            {
                "test_images": np.zeros((0, 3, 8, 8), np.uint8),
                "test_labels": np.zeros(0, np.int64),
            },
            "test images.*empty",
        ),
        (
            {"domains": np.array([0, 1, 2, 0]), "domain_names": ("x", "y")},
            "outside.*domains 0 to 1",
        ),
        ({"domains": np.array([0, 1]), "domain_names": ("x", "y")}, "2 domains for 4 images"),
        (
            {"train_images": np.array([[0, 1], [0, 1], [0, np.nan], [np.inf, 1]], np.float32)},
            "train images contain a NaN or infinite value in vector 2",
        ),
    ],
)
def test_invalid_arguments_raise(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        Dataset(**parts(**changes))


def test_from_arrays_counts_the_classes_of_both_splits() -> None:
    images = np.zeros((2, 8, 8), np.uint8)
    data = Dataset.from_arrays(images, [0, 0], images, [1, 3])
    assert data.class_names == ("0", "1", "2", "3")
    assert (data.name, data.flip) == ("arrays", False)


def test_from_arrays_takes_names() -> None:
    images = np.zeros((2, 8, 8), np.uint8)
    data = Dataset.from_arrays(
        images, [0, 1], images, [1, 0], ["cat", "dog"], flip=True, name="pets"
    )
    assert (data.class_names, data.flip, data.name) == (("cat", "dog"), True, "pets")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1000], "label 1000 implies more classes than there are images, 4"),
        ([0, -1], "train labels contain -1 at index 1"),
        ([], "0 train labels for 2 images"),
        ([0.0, 1.0], "train labels are float64"),
        (["cat", "dog"], "train labels are <U3"),
        ([[0], [1]], re.escape("shape (2, 1)")),
    ],
)
def test_from_arrays_raises_for_invalid_labels(labels: list[Any], message: str) -> None:
    images = np.zeros((2, 8, 8), np.uint8)
    with pytest.raises(SteradError, match=message):
        Dataset.from_arrays(images, labels, images, [0, 1])


def test_from_arrays_raises_for_empty_arrays() -> None:
    with pytest.raises(SteradError, match="empty"):
        Dataset.from_arrays(np.zeros((0, 8, 8)), [], np.zeros((0, 8, 8)), [])
