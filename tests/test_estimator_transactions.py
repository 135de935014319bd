"""A call of partial_fit is complete or leaves no trace, and predictions never wait for one."""

import copy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from sterad import METHODS, OnlineClassifier
from sterad.errors import SteradError
from sterad.memory import SlotMemory
from sterad.methods import Learner
from sterad.methods.base.rollback import Snapshot
from sterad.testing.method import same
from tests.estimator_scaffold import SMALL, X, Y, fitted, make_small, state_of

CAN_LEARN = sorted(set(METHODS) - {"pfc"})  # pfc needs the number of classes
FIELDS: dict[str, dict[str, Any]] = {"gdumb": {"epochs": 1}, "joint": {"epochs": 1}}
ARGUMENTS: dict[str, Any] = {"memory": 12, "width": 2, "encoder": "mlp", "batch_size": 4}


class RefusalError(Exception):
    """Stands for an error in a user's encoder."""


@contextmanager
def failing(classifier: OnlineClassifier, step: int, error: BaseException) -> Iterator[None]:
    """Make the learner raise after so many batches of the next call."""
    learner = classifier._state().learner()
    observe, left = learner.observe, [step]

    def observe_or_fail(batch: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            observe(batch)  # the error comes after everything has changed
            raise error
        return observe(batch)

    learner.observe = observe_or_fail  # type: ignore[method-assign]
    try:
        yield
    finally:
        vars(learner).pop("observe", None)


@pytest.mark.parametrize("method", CAN_LEARN)
def test_a_call_that_fails_leaves_no_trace(method: str) -> None:
    """The call brings a new class, fills the memory and overwrites a part of it."""
    classifier = OnlineClassifier(method, **ARGUMENTS, **FIELDS.get(method, {}))
    classifier.partial_fit(X[:8], Y[:8])
    other, before = copy.deepcopy(classifier), state_of(classifier)
    probabilities = classifier.predict_proba(X)
    for error in (RefusalError(), KeyboardInterrupt()):
        with failing(classifier, 3, error), pytest.raises(type(error)):
            classifier.partial_fit(np.concatenate([X, X]), np.concatenate([Y + 1, Y]))
        assert np.array_equal(classifier.predict_proba(X), probabilities)
        assert same(state_of(classifier), before)
    for either in (classifier, other):
        either.partial_fit(X, Y + 2)
    assert same(state_of(classifier), state_of(other)), "it continues as if nothing had happened"


@pytest.mark.parametrize("policy", ["greedy-balanced", "reservoir", "everything"])
@pytest.mark.parametrize("method", ["derpp", "scr"])
def test_memories_return_to_their_state(method: str, policy: str) -> None:
    classifier = OnlineClassifier(method, **ARGUMENTS, memory_policy=policy)
    classifier.partial_fit(X[:8], Y[:8])
    before = state_of(classifier)
    for _ in range(2):
        with failing(classifier, 4, RefusalError()), pytest.raises(RefusalError):
            classifier.partial_fit(X, Y + 1)
        assert same(state_of(classifier), before)


def test_rows_before_an_outlier_are_not_learned() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(140, 16)), np.arange(140) % 5
    classifier = OnlineClassifier("er", 100).partial_fit(x[:100], y[:100])
    before = state_of(classifier)
    x[125] = 1e9
    with pytest.raises(SteradError, match="in rows 20 to 29: nothing of this call was learned"):
        classifier.partial_fit(x[100:], y[100:])
    assert same(state_of(classifier), before)
    skipping = OnlineClassifier("er", 100, on_divergence="skip").partial_fit(x[:100], y[:100])
    skipping.partial_fit(x[100:], y[100:])
    assert skipping.skipped_batches_ == 1
    without = np.delete(x[100:], slice(20, 30), axis=0), np.delete(y[100:], slice(20, 30))
    classifier.partial_fit(*without)
    assert np.array_equal(skipping.predict_proba(x[:50]), classifier.predict_proba(x[:50]))


def test_a_failed_fit_keeps_what_was_learned_before() -> None:
    classifier, other = fitted(), fitted()
    before = state_of(classifier)
    with pytest.raises(SteradError, match=r"variance -1\.0 is out of range"):
        classifier.set_params(variance=-1.0).fit(X, Y)
    classifier.set_params(variance=2.0)
    assert same(state_of(classifier) | {"params": {}}, before | {"params": {}})
    with pytest.raises(SteradError, match=r"contain 2\.0"):
        classifier.fit(np.full((4, 8, 8), 2.0), [0, 1, 2, 3])
    for either in (classifier, other):
        either.partial_fit(X[:6], Y[:6])
    assert np.array_equal(classifier.predict_proba(X), other.predict_proba(X))


def test_a_snapshot_copies_no_sample_of_the_memory() -> None:
    classifier = fitted(memory=5000)
    learner = classifier._state().learner()
    memory: Any = learner.memory  # type: ignore[attr-defined]
    assert isinstance(memory, SlotMemory)
    snapshot = Snapshot(learner)
    copies = [one for one in tensors_in(snapshot.state) if one.numel() >= 5000 * 64]
    assert not copies
    snapshot.close()
    assert len(memory.watchers) == 2, "the features and the last finished state"


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return (
        [] if not isinstance(value, dict | list) else [t for one in values for t in tensors_in(one)]
    )


class Pausing:
    """Lets a call of partial_fit stop after its first batch until it is released."""

    def __init__(self, learner: Learner) -> None:
        self.reached, self.release = threading.Event(), threading.Event()
        observe = learner.observe

        def observe_and_wait(batch: Any) -> Any:
            loss = observe(batch)
            self.reached.set()
            assert self.release.wait(60)
            return loss

        learner.observe = observe_and_wait  # type: ignore[method-assign]


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("agd-fd", SMALL),
        ("er", {}),
        ("agd-fd", SMALL | {"classifier": "knn"}),
        ("agd-fd", SMALL | {"teacher": "ema", "predict_with": "teacher"}),
        ("agd-fd", SMALL | {"classifier": "nearest-direction", "retrain_head": True}),
    ],
)
def test_predictions_do_not_wait_and_see_the_last_finished_call(
    method: str, fields: dict[str, Any]
) -> None:
    classifier = fitted(method, fields=fields)
    expected = fitted(method, fields=fields).predict_proba(X)
    pausing = Pausing(classifier._state().learner())
    thread = in_thread(lambda: classifier.partial_fit(X, Y + 5))
    assert pausing.reached.wait(60)
    start = time.perf_counter()
    assert np.array_equal(classifier.predict_proba(X), expected), "a half-made call was seen"
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert time.perf_counter() - start < 30
    assert thread.is_alive()
    pausing.release.set()
    thread.join(60)
    assert classifier.classes_.tolist() == [0, 1, 2, 5, 6, 7]


def test_each_prediction_of_many_threads_is_of_a_finished_call() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 8)), np.arange(200) % 4
    steps = [slice(start, start + 20) for start in range(20, 200, 20)]
    alone = OnlineClassifier("agd-fd", 50, width=2, **SMALL).partial_fit(x[:20], y[:20])
    valid = [alone.predict_proba(x).tobytes()]
    valid += [alone.partial_fit(x[rows], y[rows]).predict_proba(x).tobytes() for rows in steps]
    classifier = OnlineClassifier("agd-fd", 50, width=2, **SMALL).partial_fit(x[:20], y[:20])
    seen: list[bytes] = []
    is_done = threading.Event()

    def predict() -> None:
        while not is_done.is_set():
            seen.append(classifier.predict_proba(x).tobytes())

    threads = [in_thread(predict) for _ in range(3)]
    for rows in steps:
        classifier.partial_fit(x[rows], y[rows])
    is_done.set()
    for thread in threads:
        thread.join(60)
    assert len(seen) >= 3
    assert set(seen) <= set(valid)
    assert classifier.predict_proba(x).tobytes() == valid[-1]


def test_gdumb_predicts_while_another_thread_learns() -> None:
    """It trains on the memory to predict, so these predictions wait for a call."""
    classifier = make_small("gdumb", fields={"epochs": 1, "memory_batch": 8}).partial_fit(X, Y)
    results: list[Any] = []
    threads = [
        in_thread(lambda: classifier.partial_fit(X, Y)),
        in_thread(lambda: results.append(classifier.predict(X))),
    ]
    for thread in threads:
        thread.join(60)
    assert set(results[0]) <= {0, 1, 2}
