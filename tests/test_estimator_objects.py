"""Objects as arguments of OnlineClassifier: used, saved by their digest and given again to load."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sterad import OnlineClassifier
from sterad.classifiers import NearestNeighbors
from sterad.errors import SteradError
from sterad.estimator.recipe import Recipe, digest_of
from sterad.methods.er import ER
from tests.estimator_scaffold import SMALL, X, Y, have_equal_probabilities, make_small


class Steeper(ER):
    """ER with another loss."""

    def loss(self, retrieved: Any, batch: Any) -> Tensor:
        return 2 * super().loss(retrieved, batch)


class Steepest(ER):
    """Another method than Steeper."""

    def loss(self, retrieved: Any, batch: Any) -> Tensor:
        return 3 * super().loss(retrieved, batch)


def test_a_method_and_a_classifier_may_be_objects() -> None:
    classifier = OnlineClassifier(Steeper, 20, width=2).fit(X, Y)
    plain = OnlineClassifier("er", 20, width=2).fit(X, Y)
    assert not np.array_equal(classifier.predict_proba(X), plain.predict_proba(X))
    by_object = make_small(classifier=NearestNeighbors).fit(X, Y)
    by_name = make_small(classifier="knn").fit(X, Y)
    assert have_equal_probabilities(by_object, by_name)


def test_objects_are_given_again_to_load(tmp_path: Path) -> None:
    file = tmp_path / "feed.sterad"
    classifier = OnlineClassifier(Steeper, 20, width=2).fit(X, Y)
    classifier.save(file)
    loaded = OnlineClassifier.load(file, method=Steeper)
    for one in (classifier, loaded):
        one.partial_fit(X[:5], Y[:5])
    assert have_equal_probabilities(loaded, classifier)
    with pytest.raises(
        SteradError, match=r"made with an object as method.*load\(path, method=\.\.\.\)"
    ):
        OnlineClassifier.load(file)
    with pytest.raises(SteradError, match="method differs from the object that the classifier was"):
        OnlineClassifier.load(file, method=Steepest)
    with pytest.raises(SteradError, match="was not made with an object as classifier: load it"):
        OnlineClassifier.load(file, method=Steeper, classifier=NearestNeighbors)


def test_the_digest_of_a_trained_module_does_not_depend_on_its_weights() -> None:
    first, second = (nn.Sequential(nn.Flatten(), nn.Linear(64, 5)) for _ in range(2))
    weights = [next(one.parameters()) for one in (first, second)]
    assert not torch.equal(*weights)
    assert digest_of(first, frozen=False) == digest_of(second, frozen=False)
    assert digest_of(first, frozen=True) != digest_of(second, frozen=True)
    wider = nn.Sequential(nn.Flatten(), nn.Linear(64, 6))
    assert digest_of(first, frozen=False) != digest_of(wider, frozen=False)


def test_names_are_fields_of_the_method_and_objects_are_parts() -> None:
    def noise(x: Tensor) -> Tensor:
        return x

    params = OnlineClassifier(optimizer="sgd", augment=noise, memory=30).get_params()
    recipe = Recipe.of(params, (1, 8, 8))
    assert recipe.config.optimizer == "sgd"
    assert recipe.parts == {"augmentation": noise}
    assert recipe.problem.memory == 30
    recipe = Recipe.of(OnlineClassifier(augment="none", **SMALL).get_params(), (1, 8, 8))
    assert recipe.config.augmentation == "none"
    assert not recipe.parts


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("encoder", "encoder 3 is of type int: give a name, or an object that can be called"),
        ("optimizer", "optimizer 3 is of type int: give a name, or an object that can be called"),
        ("augment", "augmentation 3 is of type int: give a name, or an object that can be called"),
        ("classifier", "classifier 3 is of type int: give a name, or a class with fit and scores"),
        ("retrieval", "retrieval 3 is of type int: give a name or an object"),
    ],
)
def test_values_that_are_neither_names_nor_objects_are_refused(name: str, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        make_small().set_params(**{name: 3}).fit(X, Y)
