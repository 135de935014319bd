"""Class means along a feed: predictions after learning do not encode the memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from sterad import OnlineClassifier
from sterad.classifiers import NearestMean
from sterad.encoders import Network
from sterad.experiments.checkpoint import load_checkpoint, save_checkpoint
from sterad.methods.base import prediction_copy
from sterad.methods.base.encoded_memory import RollingFeatures
from sterad.methods.base.rollback import replay_of
from sterad.testing.method import same
from tests.estimator_scaffold import SMALL, X, Y, fitted, have_equal_probabilities, state_of


def cache_of(classifier: OnlineClassifier) -> RollingFeatures:
    replay = replay_of(classifier._state().learner())
    assert replay is not None
    assert replay.encoded_memory.rolling is not None
    return replay.encoded_memory.rolling


def exact_means(classifier: OnlineClassifier) -> NearestMean:
    replay = replay_of(classifier._state().learner())
    assert replay is not None
    batch = replay.memory.read(torch.arange(len(replay.memory)))  # type: ignore[attr-defined]
    h = replay.evaluate(batch.x, lambda network, x: network.features(x))
    return NearestMean.fit([(F.normalize(h), batch.y)])


def count_encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the number of images of each pass through the network is added."""
    counts: list[int] = []
    features = Network.features

    def counted(self: Network, x: torch.Tensor, unit: bool = False) -> torch.Tensor:
        counts.append(len(x))
        return features(self, x, unit)

    monkeypatch.setattr(Network, "features", counted)
    return counts


@pytest.mark.parametrize("fields", [{}, {"classifier": "knn"}, {"classifier": "linear-probe"}])
def test_a_prediction_encodes_its_own_image_and_nothing_else(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = fitted(memory=200, fields=SMALL | fields)
    classifier.partial_fit(np.concatenate([X, X]), np.concatenate([Y, Y]))
    encoded = count_encoded(monkeypatch)
    classifier.predict(X[:1])
    assert encoded == [1]


def test_a_call_encodes_a_slice_of_the_memory_for_each_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prediction_copy, "REFRESHED_IMAGES", 8)
    classifier = fitted(memory=200, batch_size=3)
    encoded = count_encoded(monkeypatch)
    classifier.partial_fit(X[:6], Y[:6])
    assert sum(encoded) == 6 + 2 * 8, "the new images and two slices of the memory"
    encoded.clear()
    classifier.consolidate()
    assert sum(encoded) == 30


def test_consolidated_means_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_copy, "REFRESHED_IMAGES", 8)
    classifier = fitted(memory=200).partial_fit(X[:6], Y[:6])
    rolling = classifier.predict_proba(X)
    fit: Any = replay_of(classifier.consolidate()._state().predictor)
    exact = exact_means(classifier)
    torch.testing.assert_close(fit.fitted.means, exact.means, rtol=1e-5, atol=1e-6)
    assert fit.fitted.variance == pytest.approx(exact.variance, rel=1e-4)
    assert not np.array_equal(classifier.predict_proba(X), rolling)


def test_a_memory_of_one_slice_is_always_exact() -> None:
    classifier = fitted(memory=8)
    fit: Any = replay_of(classifier._state().predictor)
    exact = exact_means(classifier)
    assert fit.fitted.labels.tolist() == exact.labels.tolist()
    torch.testing.assert_close(fit.fitted.means, exact.means, rtol=1e-5, atol=1e-6)


def test_a_class_without_a_vote_has_probability_zero() -> None:
    """Ten neighbors vote, and all of them may be of one class."""
    x = np.concatenate([np.eye(2)[[0] * 12], np.eye(2)[[1] * 12]]).repeat(4, axis=1)
    classifier = OnlineClassifier("er", 200, width=2, classifier="knn", lr=1e-9, encoder="flatten")
    classifier.partial_fit(x, [0] * 12 + [1] * 12)
    assert classifier.predict_proba(x[[0, -1]]).tolist() == [[1, 0], [0, 1]]


def test_every_class_is_refreshed_equally() -> None:
    classifier = fitted(memory=200).partial_fit(X, [0] * 24)
    cache = cache_of(classifier)
    slots = cache._next_slots(9)
    assert cache.tables["labels"][slots].bincount().tolist() == [3, 3, 3]
    assert len(slots.unique()) == 9
    assert len(cache._next_slots(1000)) == 48


def test_the_drift_corrects_old_features() -> None:
    """All features are older by about the same vector; three of eight are encoded again."""
    classifier = fitted(memory=200)
    cache, replay = cache_of(classifier), replay_of(classifier._state().learner())
    assert replay is not None
    cache.refresh_all(replay.engine, replay.predictor)
    slots, labels = torch.arange(24), cache.tables["labels"][:24].clone()
    cache._remove(slots)
    shift = torch.nn.functional.one_hot(torch.tensor(0), cache.features.shape[1])
    cache.features[:24] = F.normalize(F.normalize(cache.features[:24]) + 0.1 * shift)
    cache.tables["labels"][:24] = labels
    cache._add(cache.features[:24].double(), labels, 1)
    old = cache.nearest_mean(torch.device("cpu"))
    cache.refresh(replay.engine, replay.predictor, 9)
    new, exact = cache.nearest_mean(torch.device("cpu")), exact_means(classifier)
    assert old is not None
    assert new is not None
    distances = [float((one.means - exact.means).norm()) for one in (old, new)]
    assert distances[1] < 0.2 * distances[0]


def test_more_classes_than_the_slice_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_copy, "REFRESHED_IMAGES", 5)
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 8)), np.arange(40) % 20
    classifier = OnlineClassifier("scr", 200, width=2, memory_batch=5).partial_fit(x, y)
    cache = cache_of(classifier)
    for _ in range(6):
        classifier.partial_fit(x[:1], y[:1])
    assert int((cache.step - cache.tables["refreshed"]).max()) <= 4


def test_features_of_an_encoder_without_weights_are_not_encoded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = X.reshape(24, 64) / 255
    classifier = OnlineClassifier("agd-fd", 100, encoder="flatten", **SMALL).partial_fit(rows, Y)
    encoded = count_encoded(monkeypatch)
    classifier.partial_fit(rows[:5], Y[:5])
    assert sum(encoded) == 5


def test_classes_that_lost_their_last_image_are_not_predicted() -> None:
    classifier = fitted(memory=3, memory_policy="greedy-balanced", batch_size=3)
    classifier.partial_fit(X[:3], [7, 8, 9])
    stored = cache_of(classifier).tables["labels"]
    assert len(stored) == 3
    probabilities = classifier.predict_proba(X)
    names = classifier.seen_classes_[stored.numpy()]
    assert (probabilities[:, ~np.isin(classifier.classes_, names)] == 0).all()


def test_saved_features_continue_bit_for_bit(tmp_path: Path) -> None:
    file = tmp_path / "feed.sterad"
    classifier = fitted(memory=200, batch_size=5)
    classifier.save(file)
    loaded = OnlineClassifier.load(file)
    assert have_equal_probabilities(loaded, classifier)
    for one in (classifier, loaded):
        one.partial_fit(X[:9], Y[:9])
    assert same(state_of(loaded), state_of(classifier))
    state = load_checkpoint(file, "OnlineClassifier")
    save_checkpoint(file, "OnlineClassifier", state | {"features": None})
    exact = OnlineClassifier.load(file)
    expected = classifier.load(file).consolidate()
    assert have_equal_probabilities(exact, expected), "without features, all are encoded"


@pytest.mark.parametrize("name", ["features", "labels", "sums", "drift", "weights", "step"])
def test_damaged_features_are_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "feed.sterad"
    fitted().save(file)
    state = load_checkpoint(file, "OnlineClassifier")
    values = state["features"]
    values[name] = -1 if name == "step" else values[name][:-1]
    save_checkpoint(file, "OnlineClassifier", state)
    with pytest.raises(ValueError, match=r"feed\.sterad' cannot be used|damaged"):
        OnlineClassifier.load(file)
