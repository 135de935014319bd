"""OnlineClassifier: accepted inputs, predictions, saved files and reproducibility."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from sterad import OnlineClassifier
from sterad.data.digits import Digits
from tests.estimator_scaffold import SMALL, X, Y, fitted, have_equal_probabilities, make_small

Array = npt.NDArray[Any]


def to_color(x: Array) -> Array:
    return np.stack([x, x // 2, 255 - x], axis=1)


FORMATS: dict[str, Any] = {
    "bytes (n, c, h, w)": X[:, None],
    "bytes (n, h, w, c)": X[..., None],
    "float64": X / 255,
    "float32": (X / 255).astype(np.float32),
    "torch bytes": torch.from_numpy(X.copy()),
    "torch floats": torch.from_numpy(X / 255).float()[:, None],
    "torch with gradient": torch.from_numpy(X / 255).requires_grad_(),
    "nested lists": (X / 255).tolist(),
    "Fortran order": np.asfortranarray(X),
}


@pytest.mark.parametrize("name", FORMATS)
def test_equal_images_of_any_format_give_equal_results(name: str) -> None:
    other = make_small().partial_fit(FORMATS[name], Y)
    assert have_equal_probabilities(other, fitted())
    assert np.array_equal(other.predict_proba(FORMATS[name]), other.predict_proba(X))


def test_channels_may_come_first_or_last() -> None:
    first = make_small().partial_fit(to_color(X), Y)
    last = make_small().partial_fit(np.moveaxis(to_color(X), 1, 3) / 255, Y)
    assert np.array_equal(first.predict_proba(to_color(X)), last.predict_proba(to_color(X)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, torch.float64])
def test_feature_vectors_use_an_mlp(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    rows = 40 * np.eye(6)[labels] + rng.normal(scale=10, size=(300, 6))
    x = torch.from_numpy(rows) if dtype is torch.float64 else rows.astype(dtype)
    classifier = make_small(width=4).partial_fit(x[:200], labels[:200])
    assert classifier.score(x[200:], labels[200:]) > 0.9


LABELS: dict[str, Any] = {
    "list": [7, -3, 10**12],
    "bytes": np.array([7, 3, 200], dtype=np.uint8),
    "torch": torch.tensor([7, 3, 5]),
    "strings": ["cat", "dog", "größe"],
    "objects": np.array(["cat", "dog", "bird"], dtype=object),
    "booleans": [True, False, True],
}


@pytest.mark.parametrize("name", LABELS)
def test_predictions_have_the_type_of_the_labels(name: str) -> None:
    names = LABELS[name]
    labels: Any = names[torch.from_numpy(Y)] if name == "torch" else [names[y] for y in Y]
    classifier = make_small().partial_fit(X, labels)
    assert classifier.classes_.tolist() == sorted(set(np.asarray(names).tolist()))
    assert classifier.seen_classes_.tolist() == list(dict.fromkeys(np.asarray(names).tolist()))
    assert set(classifier.predict(X).tolist()) <= set(classifier.classes_.tolist())
    assert classifier.score(X, labels) == np.mean(classifier.predict(X) == np.asarray(labels))
    if len(classifier.classes_) == 3:  # the names do not change what is learned
        order = np.argsort(np.asarray(names))
        expected = fitted().predict_proba(X)[:, order]
        assert np.array_equal(classifier.predict_proba(X), expected)


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "finetune"])
def test_new_classes_may_appear_at_any_time(method: str) -> None:
    classifier = make_small(
        method, fields={} if method == "finetune" else SMALL | {"projection": 2}
    )
    for index in (2, 0, 1):
        classifier.partial_fit(X[index::3], [f"class {index}"] * 8)
        assert classifier.seen_classes_.tolist()[-1] == f"class {index}"
        assert classifier.predict_proba(X).shape == (24, len(classifier.classes_))
        assert set(classifier.predict(X)) <= set(classifier.classes_)
    classifier.partial_fit(X[:1], ["class 0"])
    assert classifier.seen_classes_.tolist() == ["class 2", "class 0", "class 1"]
    assert classifier.classes_.tolist() == ["class 0", "class 1", "class 2"]


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("agd-fd", SMALL),
        ("vmf-fd", SMALL),
        ("agd-fd", SMALL | {"classifier": "nearest-direction"}),
        ("agd-fd", SMALL | {"classifier": "nearest-direction", "retrain_head": True}),
        ("finetune", {}),
    ],
)
def test_predict_proba_returns_probabilities_in_the_order_of_classes_(
    method: str, fields: dict[str, Any]
) -> None:
    classifier = fitted(method, fields=fields)
    probabilities = classifier.predict_proba(X)
    assert probabilities.dtype == np.float64
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert np.array_equal(classifier.classes_[probabilities.argmax(axis=1)], classifier.predict(X))
    assert np.array_equal(classifier.predict_proba(X), probabilities), "predictions change nothing"


def test_a_class_without_stored_images_has_probability_zero() -> None:
    predicted = set()
    for seed in range(6):
        classifier = fitted(memory=1, seed=seed)
        (only,) = set(classifier.predict(X).tolist())
        assert classifier.predict_proba(X).tolist() == [[float(c == only) for c in range(3)]] * 24
        predicted.add(only)
    assert len(predicted) > 1


def test_score_is_the_accuracy() -> None:
    classifier = fitted()
    assert classifier.score(X, Y) == (classifier.predict(X) == Y).mean()
    assert classifier.score(X, Y + 100) == 0, "unknown labels count as errors and are not learned"
    assert classifier.classes_.tolist() == [0, 1, 2]


def test_no_images_have_no_predictions() -> None:
    classifier = fitted()
    assert classifier.predict(X[:0]).shape == (0,)
    assert classifier.predict_proba(X[:0]).shape == (0, 3)


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "finetune"])
def test_a_loaded_classifier_continues_bit_for_bit(method: str, tmp_path: Path) -> None:
    names = np.array(["north", "east", "south"])
    classifier = make_small(method, batch_size=5).partial_fit(X[:13], names[Y[:13]])
    classifier.save(tmp_path / "feed.sterad")
    loaded = OnlineClassifier.load(str(tmp_path / "feed.sterad"))
    assert have_equal_probabilities(loaded, classifier)
    for either in (classifier, loaded):
        either.partial_fit(X[13:], names[Y[13:]]).partial_fit(X[:3], ["west"] * 3)
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert have_equal_probabilities(loaded, classifier)
    loaded.save(tmp_path / "feed.sterad")
    assert have_equal_probabilities(OnlineClassifier.load(tmp_path / "feed.sterad"), classifier)


def test_arguments_are_saved(tmp_path: Path) -> None:
    arguments = {
        "memory": 7,
        "encoder": "mlp",
        "width": 3,
        "batch_size": 4,
        "flip": True,
        "seed": 5,
    }
    fitted("vmf-fd", fields=SMALL | {"variance": 0.25}, **arguments).save(tmp_path / "feed.sterad")
    loaded = OnlineClassifier.load(tmp_path / "feed.sterad")
    assert {name: getattr(loaded, name) for name in arguments} == arguments
    assert loaded.get_params() == loaded.get_params() | {"method": "vmf-fd", "variance": 0.25}


def test_numpy_numbers_as_arguments_can_be_saved(tmp_path: Path) -> None:
    fields = SMALL | {"variance": np.float64(2), "views": np.int64(1)}
    classifier = fitted(memory=np.int64(20), seed=np.int32(0), width=np.int64(2), fields=fields)
    classifier.save(tmp_path / "feed.sterad")
    assert have_equal_probabilities(OnlineClassifier.load(tmp_path / "feed.sterad"), fitted())


def test_results_depend_on_the_seed_and_not_on_the_global_generator() -> None:
    state = torch.random.get_rng_state()
    first = fitted()
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.rand(3)
    assert have_equal_probabilities(first, fitted())
    assert not have_equal_probabilities(first, fitted(seed=1))


def test_one_call_or_several_give_equal_results() -> None:
    classifier = make_small(batch_size=6)
    for start, stop in ((0, 6), (6, 18), (18, 24)):
        classifier.partial_fit(X[start:stop], Y[start:stop]).predict(X)
    assert have_equal_probabilities(classifier, fitted(batch_size=6))


@pytest.mark.parametrize("name", ["bytes", "float32", "rows"])
def test_read_only_arrays_are_accepted_and_unchanged(name: str) -> None:
    x = {"bytes": X, "float32": X.astype(np.float32) / 255, "rows": X.reshape(24, 64) / 255}[name]
    x, y, copy = x.copy(), Y.copy(), x.copy()
    x.flags.writeable = y.flags.writeable = False
    classifier = make_small().partial_fit(x, y)
    assert 0 <= classifier.score(x, y) <= 1
    assert np.array_equal(x, copy)


def test_agd_fd_learns_digits_class_by_class_and_finetune_forgets() -> None:
    digits = Digits().load()
    subset = np.random.default_rng(0).permutation(len(digits.train_labels))[:600]
    subset = subset[np.argsort(digits.train_labels[subset], kind="stable")]
    scores = {}
    for method in ("agd-fd", "finetune"):
        classifier = make_small(
            method, memory=200, width=8, fields={"views": 1} if "fd" in method else {}
        )
        classifier.partial_fit(digits.train_images[subset], digits.train_labels[subset])
        scores[method] = classifier.score(digits.test_images, digits.test_labels)
    assert scores["agd-fd"] > 0.6
    assert scores["finetune"] < 0.3


def test_follow_equals_partial_fit_on_each_batch() -> None:
    def feed() -> Iterator[tuple[Any, Any]]:
        for label in ("a", "b", "c"):
            yield np.full((4, 8, 8), ord(label), dtype=np.uint8), [label] * 4

    fields: dict[str, Any] = {"views": 1, "projection": 8}
    followed = OnlineClassifier(memory=10, width=2, **fields).follow(feed())
    assert followed.classes_.tolist() == ["a", "b", "c"]
    fitted = OnlineClassifier(memory=10, width=2, **fields)
    for x, y in feed():
        fitted.partial_fit(x, y)
    x = np.full((3, 8, 8), 98, dtype=np.uint8)
    assert np.array_equal(followed.predict_proba(x), fitted.predict_proba(x))
