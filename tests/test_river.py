"""RiverClassifier: the checks of river, and streams of dictionaries."""

import importlib
import pickle
from typing import Any

import numpy as np
import pytest

from sterad.errors import SteradError
from sterad.river import RiverClassifier

SMALL: dict[str, Any] = {"memory": 10, "width": 1, "memory_batch": 4, "threads": 1}


def small() -> RiverClassifier:
    return RiverClassifier("er", **SMALL)


@pytest.mark.slow
def test_the_checks_of_river_pass() -> None:
    checks = pytest.importorskip("river.checks", reason="river is not installed")
    every = list(checks.yield_checks(small()))
    assert len(every) >= 50
    for check in every:
        check(small().clone())


def test_a_pipeline_of_river_learns() -> None:
    pytest.importorskip("river", reason="river is not installed")
    compose, datasets, metrics, preprocessing = (
        importlib.import_module(f"river.{name}")
        for name in ("compose", "datasets", "metrics", "preprocessing")
    )
    model = compose.Pipeline(
        preprocessing.StandardScaler(), RiverClassifier("er", 200, width=4, memory_batch=16)
    )
    metric = metrics.Accuracy()
    for x, y in datasets.Phishing().take(300):
        metric.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert metric.get() > 0.75


def test_features_are_found_by_name() -> None:
    rng = np.random.default_rng(0)
    model, other = small(), small()
    assert model.predict_one({"a": 1}) is None
    assert model.predict_proba_one({"a": 1}) == {}
    for _ in range(30):
        a, b = rng.normal(size=2)
        model.learn_one({"a": a, "b": b}, a > b)
        other.learn_one({"b": b, "a": a}, a > b)
    assert model.predict_proba_one({"a": 0.5, "b": 0}) == other.predict_proba_one({"a": 0.5})
    assert model.predict_proba_one({"a": 1, "c": 7}) == other.predict_proba_one({"a": 1})
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict_proba_one({"a": 1}) == model.predict_proba_one({"a": 1})
    assert set(model.predict_proba_one({"a": 1})) == {False, True}


def test_features_that_are_no_numbers_are_refused() -> None:
    model = small()
    with pytest.raises(SteradError, match=r"a feature is no number \(could not convert.*encode"):
        model.learn_one({"color": "red"}, 1)
    assert model.predict_one({"color": 1}) is None
