"""OnlineClassifier: invalid input raises an error and leaves the classifier unchanged."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse
import torch

from sterad import OnlineClassifier
from sterad.errors import SteradError
from sterad.experiments.checkpoint import load_checkpoint, save_checkpoint, save_hashed
from tests.estimator_scaffold import X, Y, fitted, have_equal_probabilities, make_small

Array = npt.NDArray[Any]


def images_with(value: float) -> Array:
    x = X / 255
    x[5, 2, 2] = value
    return x


INVALID: dict[str, tuple[Any, Any, str]] = {
    "NaN": (
        images_with(np.nan),
        Y,
        "contain NaN at index 5 and must be finite: replace the value, or remove",
    ),
    "infinite": (images_with(np.inf), Y, "contain inf at index 5 and must be finite"),
    "negative": (images_with(-0.25), Y, "contain -0.25 at index 5"),
    "not scaled": (X.astype(np.float32), Y, r"must be in \[0, 1\]: divide by 255"),
    "integers": (X.astype(np.int64), Y, "of type int64: give uint8 from 0 to 255, or floats"),
    "words": ("images", Y, "Expected 2D array, got scalar array instead: give images or rows"),
    "one row": (X[0, 0], Y[:1], "Expected 2D array, got 1D array instead.*Reshape your data"),
    "sparse": (scipy.sparse.eye(24).tocsr(), Y, r"are a sparse matrix.*: pass x.toarray\(\)"),
    "complex": (X * 1j, Y, "Complex data not supported: give real numbers"),
    "no features": (np.zeros((24, 0)), Y, r"0 feature\(s\) \(shape=\(24, 0\)\)"),
    "no labels": (X, None, "requires y to be passed, but the target y is None: give one label"),
    "ragged": ([[1.0], [1.0, 2.0]], [0, 1], "converted to one array .*: give all of them the same"),
    "larger": (np.zeros((24, 16, 16)), Y, r"shape \(1, 16, 16\) and .* built for \(1, 8, 8\)"),
    "in color": (np.zeros((24, 3, 8, 8)), Y, r"shape \(3, 8, 8\) and .* one number of channels"),
    "five channels": (np.zeros((24, 5, 8, 8)), Y, r"shape \(24, 5, 8, 8\): give images"),
    "features": (np.zeros((24, 64)), Y, r"shape \(64,\) and .* built for \(1, 8, 8\)"),
    "one image": (X[0].astype(float), Y[:1], "8 images and 1 labels: give one label per image"),
    "empty": (X[:0], Y[:0], "the batch is empty: give at least one image"),
    "too few labels": (X, Y[:5], "24 images and 5 labels: give one label per image"),
    "too many labels": (X[:5], Y, "5 images and 24 labels"),
    "other type": (X, Y.astype(str), "label '0' is a str and earlier labels are int, like 0"),
    "mixed types": (X[:2], [1, "two"], "label 1 is a int among strings: use one type"),
    "float labels": (X, Y / 2, "labels are of type float64: give integers or strings"),
    "torch float labels": (X, torch.from_numpy(Y / 2), "labels are of type float64"),
    "no label": (X[:2], [None, None], "labels are of type object"),
    "one-hot labels": (
        X,
        np.eye(3)[Y],
        r"labels have shape \(24, 3\): give a flat list, one label per image",
    ),
    "one label": (X, 3, r"labels have shape \(\)"),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_training_data_raise_and_change_nothing(name: str) -> None:
    x, y, message = INVALID[name]
    classifier, other = fitted(), fitted()
    for call in (classifier.partial_fit, classifier.score):
        with pytest.raises(SteradError, match=message):
            call(x, y)
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert have_equal_probabilities(classifier, other)
    assert have_equal_probabilities(
        classifier.partial_fit(X[:5], [8] * 5), other.partial_fit(X[:5], [8] * 5)
    )


@pytest.mark.parametrize("name", ["NaN", "not scaled", "larger", "in color", "features"])
def test_invalid_inputs_of_predict_raise(name: str) -> None:
    x, _, message = INVALID[name]
    classifier, other = fitted(), fitted()
    for call in (classifier.predict, classifier.predict_proba):
        with pytest.raises(SteradError, match=message):
            call(x)
    assert have_equal_probabilities(classifier, other)


@pytest.mark.parametrize("method", ["agd-fd", "finetune"])
@pytest.mark.parametrize("y", [Y / 2, Y[:5]])
def test_an_invalid_first_batch_fixes_no_shape_and_no_labels(method: str, y: Any) -> None:
    classifier = make_small(method)
    with pytest.raises(SteradError):
        classifier.partial_fit(np.zeros((24, 16, 16)), y)
    with pytest.raises(SteradError, match="nothing has been learned yet: call partial_fit first"):
        classifier.predict(X)
    assert not hasattr(classifier, "classes_")
    assert have_equal_probabilities(classifier.partial_fit(X, Y), fitted(method))


def test_predicting_and_saving_before_partial_fit_raise(tmp_path: Path) -> None:
    classifier = make_small()
    calls: list[Any] = [
        lambda: classifier.predict(X),
        lambda: classifier.predict_proba(X),
        lambda: classifier.score(X, Y),
        lambda: classifier.save(tmp_path / "feed.sterad"),
    ]
    for call in calls:
        with pytest.raises(SteradError, match="nothing has been learned yet: call partial_fit"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "agdfd"}, "unknown method 'agdfd': did you mean 'agd-fd'"),
        ({"encoder": "resnet19"}, "unknown encoder 'resnet19': did you mean 'resnet18'"),
        ({"veiws": 1}, "unknown field 'veiws' in OnlineClassifier: did you mean 'views'"),
        ({"mehtod": "er"}, "unknown field 'mehtod' in OnlineClassifier: did you mean 'method'"),
        ({"augment": "none", "augmentation": "full"}, "are the same: give one of them"),
        ({"threads": 0}, "threads 0 is out of range: give an integer from 1 to 4,096"),
        ({"precision": "float8"}, "precision 'float8' is unknown: choose float32, bfloat16"),
        ({"on_divergence": "ignore"}, "on_divergence 'ignore' is unknown: choose raise or skip"),
        (
            {"views": "one"},
            "views 'one' is of type str: give an integer from 0 to 1,000$",
        ),
        (
            {"variance": -1.0},
            r"variance -1.0 is out of range: give a number in \(0, 1e",
        ),
        ({"classifier": "oracle"}, "unknown classifier 'oracle'"),
        ({"batch_size": 0}, "batch_size 0 is out of range: give an integer from 1 to 100,000$"),
        ({"memory": 0}, "memory 0 stores no samples to replay: give at least 1, or .* finetune"),
        ({"memory": -5}, "memory -5 is out of range: give an integer from 0 to 1,000,000,000$"),
        ({"memory": 2.5}, "memory 2.5 is of type float: give an integer from 0 to"),
        ({"width": 0}, "width 0 is out of range: give an integer from 1 to 4,096$"),
        ({"seed": "luck"}, "seed 'luck' is of type str: give an integer from 0 to 4,294,967,295$"),
        ({"device": "warp"}, "device 'warp' is not available here .*: use cpu"),
    ],
)
def test_invalid_arguments_raise(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        fitted(**arguments)


def test_images_that_the_encoder_cannot_use_raise() -> None:
    assert make_small().partial_fit(np.zeros((24, 8, 9)), Y).predict(np.zeros((2, 8, 9))).shape == (
        2,
    )
    with pytest.raises(SteradError, match=r"5 × 5 pixels are too small .* use the mlp encoder"):
        make_small().partial_fit(X[:, :5, :5], Y)
    assert make_small(encoder="mlp").partial_fit(X[:, :5, :5], Y).predict(X[:, :5, :5]).shape == (
        24,
    )


def test_finetune_needs_no_memory() -> None:
    assert fitted("finetune", memory=0).predict(X).shape == (24,)


class Malicious:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


def test_files_that_save_did_not_write_are_refused(tmp_path: Path) -> None:
    file, classifier = tmp_path / "feed.sterad", fitted()
    with pytest.raises(
        SteradError, match=r"there is no file .*: give the path that save\(\) wrote"
    ):
        OnlineClassifier.load(file)
    with pytest.raises(SteradError, match="there is no file"):
        OnlineClassifier.load(tmp_path)
    classifier.save(file)
    content = file.read_bytes()
    for damaged in (b"", content[:100], content[:-100], b"hello", content[: len(content) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(SteradError, match=r"feed.sterad' (is damaged|holds more than plain)"):
            OnlineClassifier.load(file)
    save_hashed(file, {"weights": torch.zeros(3)})
    with pytest.raises(SteradError, match="is not a checkpoint of sterad"):
        OnlineClassifier.load(file)
    save_checkpoint(file, "agd-fd-digits-clear-s0", {"step": 1})
    with pytest.raises(SteradError, match="belongs to 'agd-fd-digits-clear-s0'"):
        OnlineClassifier.load(file)
    save_checkpoint(file, "OnlineClassifier", {"params": {"color": 1}})
    with pytest.raises(SteradError, match=r"damaged or .*: load it with the version"):
        OnlineClassifier.load(file)
    classifier.save(file)
    state = load_checkpoint(file, "OnlineClassifier")
    save_checkpoint(file, "OnlineClassifier", state | {"input_shape": (2**31,)})
    with pytest.raises(SteradError, match=r"its inputs have the shape \(2147483648,\)"):
        OnlineClassifier.load(file)
    params = state["params"] | {"color": 1}
    save_checkpoint(file, "OnlineClassifier", state | {"params": params})
    with pytest.raises(SteradError, match=r"feed.sterad' cannot be used, unknown field 'color'"):
        OnlineClassifier.load(file)
    save_hashed(file, Malicious(tmp_path / "created-by-pickle"))
    with pytest.raises(SteradError, match="reading it could run code, so it is refused"):
        OnlineClassifier.load(file)
    assert not (tmp_path / "created-by-pickle").exists()
    classifier.save(file)
    assert have_equal_probabilities(OnlineClassifier.load(file), classifier)


def test_saving_to_a_missing_folder_raises(tmp_path: Path) -> None:
    classifier = fitted()
    with pytest.raises(SteradError, match=r"cannot write .*: No such file or directory"):
        classifier.save(tmp_path / "no" / "feed.sterad")
    assert have_equal_probabilities(classifier, fitted())
