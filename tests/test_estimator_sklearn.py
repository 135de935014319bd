"""OnlineClassifier as a scikit-learn classifier: its estimator checks, searches and pipelines."""

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sterad import OnlineClassifier
from sterad.errors import SteradError
from sterad.methods.er import ER
from tests.estimator_scaffold import SMALL, X, Y, fitted, have_equal_probabilities, make_small

CANNOT_HOLD = {
    "check_sample_weight_equivalence_on_dense_data": (
        "it compares rows in two orders, and what is learned from a stream depends on the order"
    ),
    "check_methods_subset_invariance": (
        "features are float32, whose rounding depends on the number of rows in a batch; it asks "
        "for 1e-7 of probabilities"
    ),
}
"""Checks of scikit-learn that cannot hold for a network that learns from a stream, and why."""
FEATURES, LABELS = X.reshape(24, 64) / 255, np.array(["b", "a", "c"])[Y]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("er", {"width": 4}), ("agd-fd", {"width": 2, "views": 1, "projection": 16})],
)
def test_the_checks_of_scikit_learn_pass(method: str, arguments: dict[str, Any]) -> None:
    classifier = OnlineClassifier(method, 100, batch_size=5, threads=1, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks without pandas are skipped with a warning
        results = check_estimator(classifier, expected_failed_checks=CANNOT_HOLD, on_fail=None)
    failed = [one["check_name"] for one in results if one["status"] == "failed"]
    # A field of the method is an attribute, which the signature of the constructor does not name.
    assert failed == ([] if method == "er" else ["check_no_attributes_set_in_init"])
    assert sum(one["status"] == "passed" for one in results) >= 50


def test_it_is_a_classifier_without_importing_scikit_learn() -> None:
    assert is_classifier(OnlineClassifier())
    code = "import sterad, sys; sterad.OnlineClassifier(); sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_arguments_and_fields_are_parameters() -> None:
    classifier = OnlineClassifier("agd-fd", 50, variance=3.0)
    assert classifier.get_params() == classifier.get_params() | {"memory": 50, "variance": 3.0}
    assert clone(classifier).get_params() == classifier.get_params()
    classifier.set_params(memory=60, views=2, variance=1.0)
    assert repr(classifier) == "OnlineClassifier('agd-fd', memory=60, variance=1.0, views=2)"
    assert "<td>views</td><td>2</td>" in classifier._repr_html_()
    before = classifier.get_params()
    with pytest.raises(SteradError, match=r"unknown field 'veiws' .*: did you mean 'views'"):
        classifier.set_params(memory=1, veiws=2)
    assert classifier.get_params() == before
    assert OnlineClassifier(seed=True).get_params()["seed"] is True, "checked in fit, not here"


def test_the_argument_fields_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="give the fields of the method as keywords"):
        old = OnlineClassifier(memory=20, width=2, fields=SMALL)
    assert have_equal_probabilities(old.partial_fit(X, Y), fitted())
    with pytest.raises(SteradError, match="unknown field 'fields'"):
        OnlineClassifier(fields=3).fit(X, Y)


def test_a_method_may_be_a_class() -> None:
    by_class = OnlineClassifier(ER, 20, width=2).fit(X, Y)
    by_name = OnlineClassifier("er", 20, width=2).fit(X, Y)
    assert np.array_equal(by_class.predict_proba(X), by_name.predict_proba(X))


def test_fit_learns_from_scratch_and_partial_fit_continues() -> None:
    classifier = make_small().fit(X, Y)
    assert have_equal_probabilities(classifier, fitted())
    classifier.partial_fit(X[:5], Y[:5])
    assert not have_equal_probabilities(classifier, fitted())
    classifier.fit(X, Y + 7)
    assert classifier.classes_.tolist() == [7, 8, 9]
    assert have_equal_probabilities(classifier, fitted())


def test_a_search_and_cross_validation_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=120)
    rows = 40 * np.eye(6)[labels] + rng.normal(scale=10, size=(120, 6)) + 100
    pipeline = make_pipeline(StandardScaler(), OnlineClassifier("er", 50, width=8, lr=0.05))
    assert cross_val_score(pipeline, rows, labels, cv=3).mean() > 0.9
    grid = {"onlineclassifier__lr": [1e-9, 0.05], "onlineclassifier__memory": [20]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring="roc_auc_ovr").fit(rows, labels)
    assert search.best_params_ == {"onlineclassifier__lr": 0.05, "onlineclassifier__memory": 20}


def test_a_pickled_classifier_continues_bit_for_bit() -> None:
    classifier = fitted()
    copied = pickle.loads(pickle.dumps(classifier))
    for one in (classifier, copied):
        one.partial_fit(X[:7], [5] * 7)
    assert have_equal_probabilities(copied, classifier)
    with pytest.raises(NotFittedError, match="nothing has been learned yet"):
        pickle.loads(pickle.dumps(make_small())).predict(X)


def test_declared_classes_are_columns_and_others_are_refused() -> None:
    names = ["d", "c", "b", "a"]
    classifier = make_small().partial_fit(FEATURES, LABELS, classes=names)
    assert classifier.classes_.tolist() == sorted(names)
    assert classifier.seen_classes_.tolist() == ["b", "a", "c"]
    probabilities = classifier.predict_proba(FEATURES)
    assert (probabilities[:, 3] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    with pytest.raises(SteradError, match="label 'e' is not in classes=, which was given in the"):
        classifier.partial_fit(FEATURES[:2], ["a", "e"])
    with pytest.raises(SteradError, match="classes= differs from the first call, which declared"):
        classifier.partial_fit(FEATURES[:2], ["a", "a"], classes=["a"])
    assert np.array_equal(classifier.predict_proba(FEATURES), probabilities)
    classifier.partial_fit(FEATURES, ["d"] * 24, classes=names)
    assert classifier.predict_proba(FEATURES)[:, 3].max() > 0
    with pytest.raises(SteradError, match="which declared none"):
        fitted().partial_fit(X, Y, classes=[0, 1, 2])


def test_a_weight_is_the_number_of_times_that_a_row_is_learned() -> None:
    weights = np.arange(24) % 3
    weighted = make_small().partial_fit(X, Y, sample_weight=weights)
    assert have_equal_probabilities(
        weighted, make_small().partial_fit(X.repeat(weights, axis=0), Y.repeat(weights))
    )
    for wrong, message in (
        (weights / 2, "negative or not whole"),
        (weights - 1, "negative or not whole"),
        (weights[:5], r"shape \(5,\) and there are 24 rows"),
        (0 * weights, "zero for all rows"),
    ):
        with pytest.raises(SteradError, match=message):
            make_small().partial_fit(X, Y, sample_weight=wrong)
    hits = weighted.predict(X) == Y
    assert weighted.score(X, Y, sample_weight=weights) == np.average(hits, weights=weights)


def test_precision_and_threads_can_be_chosen() -> None:
    images = np.random.default_rng(0).random((20, 20, 20))
    arguments: dict[str, Any] = {"width": 16, "memory_batch": 4, "threads": 1}
    labels, before = np.arange(20) % 2, torch.get_num_threads()
    half, single = (
        OnlineClassifier("er", 10, precision=precision, **arguments).fit(images, labels)
        for precision in ("bfloat16", "float32")
    )
    difference = np.abs(half.predict_proba(images) - single.predict_proba(images)).max()
    assert 0 < difference < 0.5
    assert half._state().recipe.execution.precision == "bfloat16"
    assert torch.get_num_threads() == before
