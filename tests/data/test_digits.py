from importlib.resources import files

import numpy as np
import pytest

from sterad.data import Digits


def test_images_equal_those_of_scikit_learn() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    original = datasets.load_digits()
    with files("sterad.data").joinpath("digits.npz").open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        np.testing.assert_array_equal(stored["images"], np.rint(original.images * 255 / 16))
        np.testing.assert_array_equal(stored["labels"], original.target)


def test_file_is_small_and_contains_its_attribution() -> None:
    source = files("sterad.data")
    assert len(source.joinpath("digits.npz").read_bytes()) < 60_000
    with source.joinpath("digits.npz").open("rb") as file:
        attribution = " ".join(np.load(file, allow_pickle=False)["attribution"])
    for word in ("Alpaydin", "Kaynak", "10.24432/C50P49", "CC BY 4.0"):
        assert word in attribution
        assert word in source.joinpath("NOTICE.md").read_text()


def test_split_is_fixed_and_balanced() -> None:
    data = Digits().load()
    train, test = np.bincount(data.train_labels), np.bincount(data.test_labels)
    assert (train.sum(), test.sum()) == (1442, 355)
    np.testing.assert_array_equal(test, (train + test) // 5)
    assert data.input_shape == (1, 8, 8)
    assert not data.flip
    assert data.train_images.max() == 255
