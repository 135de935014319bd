import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterad.data import DATASETS, Dataset, Defaults, Digits, Subset, held_out
from sterad.data.dataset import occurrence_index
from sterad.errors import SteradError


def test_built_in_datasets_are_registered() -> None:
    assert {"digits", "synthetic"} <= set(DATASETS)


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_description_is_frozen_and_agrees_with_its_defaults(name: str) -> None:
    description = DATASETS[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        description.root = "elsewhere"  # type: ignore[attr-defined]
    data, defaults = description.load(), description.defaults()
    assert data.name == name
    assert data.classes % defaults.tasks == 0
    per_task = len(data.train_labels) / defaults.tasks
    assert defaults.scale == pytest.approx(0.15 * per_task, abs=0.5)


@pytest.mark.parametrize(("classes", "tasks"), [(10, 5), (8, 4), (9, 3), (7, 1), (1, 1), (200, 5)])
def test_default_tasks_are_the_largest_divisor_up_to_five(classes: int, tasks: int) -> None:
    assert Defaults.for_counts(classes, 1000).tasks == tasks


@given(st.lists(st.integers(0, 5), max_size=60))
def test_occurrence_index_agrees_with_counting(values: list[int]) -> None:
    expected = [values[:at].count(value) for at, value in enumerate(values)]
    assert occurrence_index(np.array(values, np.int64)).tolist() == expected


@given(
    labels=st.lists(st.integers(0, 4), min_size=5, max_size=60),
    classes=st.integers(2, 5),
    limit=st.integers(1, 6),
)
def test_first_images_of_each_class_are_selected(
    labels: list[int], classes: int, limit: int
) -> None:
    array = np.array(labels, np.int64)
    largest = max((labels.count(c) for c in range(classes)), default=0)
    subset = Subset(classes=classes, per_class=limit)
    if 0 < largest < limit:
        with pytest.raises(SteradError, match=f"per_class is {limit}.*at most {largest}"):
            subset.choose(array, 5, "train")
        return
    expected = [
        at
        for at, label in enumerate(labels)
        if label < classes and labels[:at].count(label) < limit
    ]
    assert subset.choose(array, 5, "train").tolist() == expected


def test_images_are_selected_from_all_domains_equally() -> None:
    labels, domains = np.repeat([0, 1], 12), np.tile(np.repeat([0, 1, 2], 4), 2)
    chosen = Subset(per_class=5).choose(labels, 2, "train", domains)
    counts = np.zeros((2, 3), int)
    np.add.at(counts, (labels[chosen], domains[chosen]), 1)
    assert counts.tolist() == [[2, 2, 1], [2, 2, 1]]


def test_subset_of_a_dataset_in_memory() -> None:
    whole = Digits().load()
    data = Digits(classes=4, per_class=7, test_per_class=3, image_size=4).load()
    assert data.train_images.shape == (28, 1, 4, 4)
    assert np.bincount(data.test_labels).tolist() == [3, 3, 3, 3]
    assert data.class_names == ("0", "1", "2", "3")
    first = np.flatnonzero(whole.train_labels == 3)[:7]
    blocks = whole.train_images[first].reshape(7, 4, 2, 4, 2).mean(axis=(2, 4))
    selected = data.train_images[data.train_labels == 3][:, 0]
    np.testing.assert_array_equal(selected, np.floor(blocks + 0.5))


def test_default_scale_is_proportional_to_the_images() -> None:
    defaults = Digits(classes=4, per_class=36).defaults()
    assert defaults.tasks == 2
    assert defaults.scale == pytest.approx(43 * 4 * 36 / 1442)


def test_subset_selects_domains_with_images() -> None:
    images, labels = np.zeros((6, 1, 8, 8), np.uint8), np.array([0, 1, 2, 0, 1, 2])
    domains = np.array([0, 0, 0, 1, 1, 1])
    data = Dataset("d", images, labels, images, labels, ("a", "b", "c"), False, domains, ("x", "y"))
    cut = Subset(classes=2).apply(data)
    assert cut.domains is not None
    assert cut.domains.tolist() == [0, 0, 1, 1]
    assert cut.domain_names == ("x", "y")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": 1}, "classes 1 is out of range: give an integer from 2 to 100,000"),
        ({"per_class": 0}, "per_class 0 is out of range: give an integer from 1 to 1,000,000"),
        (
            {"test_per_class": -1},
            "test_per_class -1 is out of range: give an integer from 1 to 1,000,000",
        ),
        ({"image_size": 3}, "image_size 3 is out of range: give an integer from 4 to 4,096"),
    ],
)
def test_invalid_options_raise(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=f"^{message}$"):
        Digits(**changes)


def test_more_classes_or_images_than_exist_raise() -> None:
    with pytest.raises(SteradError, match="classes is 11, but the dataset has 10"):
        Digits(classes=11).load()
    with pytest.raises(
        SteradError, match="test_per_class is 99, but the largest class has 36 test"
    ):
        Digits(test_per_class=99).load()


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_held_out_images_are_a_share_of_each_class(share: float) -> None:
    data = Digits().load()
    cut = held_out(data, share)
    before = np.bincount(data.train_labels)
    assert (np.bincount(cut.test_labels) == np.ceil(before * share)).all()
    assert (np.bincount(cut.test_labels) + np.bincount(cut.train_labels) == before).all()
    both = np.concatenate([cut.train_images, cut.test_images]).reshape(len(data.train_labels), -1)
    whole = data.train_images.reshape(len(data.train_labels), -1)
    assert (np.sort(both, axis=0) == np.sort(whole, axis=0)).all()
    first = np.flatnonzero(data.train_labels == 3)[: int(1 / share)]
    taken = data.train_images[first[0]]
    assert any((taken == image).all() for image in cut.test_images[cut.test_labels == 3])


def test_held_out_with_share_zero_and_with_single_images() -> None:
    data = Digits().load()
    assert held_out(data, 0.0) is data
    images = np.zeros((4, 1, 4, 4), dtype=np.uint8)
    small = Dataset.from_arrays(images, [0, 0, 0, 1], images[:2], [0, 1])
    assert held_out(small, 0.5).train_labels.tolist() == [0, 1]
    lonely = Dataset.from_arrays(images[:2], [0, 1], images[:2], [0, 1])
    with pytest.raises(SteradError, match=r"validation is 0.5, .* cannot be held out"):
        held_out(lonely, 0.5)
