"""What the tests of OnlineClassifier share: data, a small classifier and a comparison."""

import copy
from typing import Any

import numpy as np

from sterad import OnlineClassifier
from sterad.data.synthetic import Synthetic
from sterad.estimator import saved_classifier

SMALL: dict[str, Any] = {"views": 1, "projection": 16, "memory_batch": 8}
DATA = Synthetic(classes=3, per_class=8, test_per_class=4, noise=0.1).load()
X, Y = DATA.train_images[:, 0], np.tile(np.arange(3), 8)
X = X.reshape(3, 8, 8, 8).swapaxes(0, 1).reshape(24, 8, 8)  # in the order of Y


def make_small(method: str = "agd-fd", **arguments: Any) -> OnlineClassifier:
    """Return a small classifier; `fields` are fields of the method in place of SMALL."""
    fields = arguments.pop("fields", SMALL if method != "finetune" else {})
    return OnlineClassifier(method, **({"memory": 20, "width": 2} | fields | arguments))


def fitted(method: str = "agd-fd", **arguments: Any) -> OnlineClassifier:
    return make_small(method, **arguments).partial_fit(X, Y)


def have_equal_probabilities(first: OnlineClassifier, second: OnlineClassifier) -> bool:
    return np.array_equal(first.predict_proba(X), second.predict_proba(X))


def state_of(classifier: OnlineClassifier) -> dict[str, Any]:
    """Return a copy of everything that was learned."""
    return copy.deepcopy(saved_classifier.state_of(classifier._state()))
