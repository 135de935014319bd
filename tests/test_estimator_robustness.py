"""The estimator with outliers, threads and forked processes."""

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from sterad import OnlineClassifier
from sterad.errors import SteradError
from sterad.testing.method import same
from tests.estimator_scaffold import state_of

RNG = np.random.default_rng(0)
CENTERS = 2 * RNG.normal(size=(5, 16))
START = RNG.bit_generator.state
Arrays = tuple[npt.NDArray[Any], npt.NDArray[Any]]


@pytest.fixture(autouse=True)
def same_data_in_any_order_of_tests() -> None:
    RNG.bit_generator.state = START


def make_data(n: int, classes: int = 5) -> Arrays:
    y = RNG.integers(0, classes, n)
    return (CENTERS[y] + RNG.normal(size=(n, 16))).astype(np.float32), y


def with_outlier(value: float, classes: int = 5) -> Arrays:
    x, y = make_data(10, classes)
    x[3] = value * RNG.choice([-1, 1], size=16)
    return x, y


@pytest.mark.parametrize("value", [1e5, 1e9, 1e20])
@pytest.mark.parametrize("method", ["er", "derpp", "er-ace", "agd-fd", "scr"])
def test_an_outlier_does_not_destroy_the_classifier(method: str, value: float) -> None:
    classifier = OnlineClassifier(method, 100, on_divergence="skip")
    classifier.partial_fit(*make_data(600))
    for _ in range(5):
        classifier.partial_fit(*with_outlier(value))
        classifier.partial_fit(*make_data(50))
    assert classifier.score(*make_data(300)) > 0.9
    if method in ("er", "derpp"):
        assert classifier.skipped_batches_ > 0


@pytest.mark.parametrize("value", [1e5, 1e20])
@pytest.mark.parametrize("method", ["slda", "ridge", "ncm", "fecam"])
def test_an_outlier_does_not_destroy_running_statistics(
    method: str, value: float, tmp_path: Path
) -> None:
    classifier = OnlineClassifier(method, on_divergence="skip").partial_fit(*make_data(300))
    before = state_of(classifier)["learner"]
    classifier.partial_fit(*with_outlier(value))
    assert classifier.skipped_batches_ == 1
    assert same(state_of(classifier)["learner"], before)
    classifier.save(tmp_path / "feed.sterad")
    loaded = OnlineClassifier.load(tmp_path / "feed.sterad").set_params(on_divergence="raise")
    with pytest.raises(SteradError, match=r"the norm of a row is .+ in rows 0 to 9: nothing"):
        loaded.partial_fit(*with_outlier(value))
    loaded.partial_fit(*make_data(50))
    assert loaded.score(*make_data(300)) > 0.9


@pytest.mark.parametrize("fields", [{}, {"memory_iterations": 2}])
@pytest.mark.parametrize("classes", [4, 5])
def test_a_refused_batch_leaves_no_trace(fields: dict[str, Any], classes: int) -> None:
    """With five classes, the batch also brings a new class, which widens the head."""
    classifier = OnlineClassifier("derpp", 100, **fields)
    classifier.partial_fit(*make_data(200, 4))
    before, labels = state_of(classifier), classifier.classes_.tolist()
    x, y = with_outlier(1e9)
    y[:] = np.arange(10) % classes
    message = r"the norm of the gradient is .+ in rows 0 to 9: nothing of this call was .+on_diverg"
    with pytest.raises(SteradError, match=message):
        classifier.partial_fit(x, y)
    assert same(state_of(classifier), before)
    assert classifier.classes_.tolist() == labels
    assert classifier.skipped_batches_ == 0
    classifier.partial_fit(*make_data(100))
    assert classifier.score(*make_data(200)) > 0.8


def test_running_statistics_are_rolled_back() -> None:
    """A network with BatchNorm keeps its running mean and variance."""
    classifier = OnlineClassifier("er", 50, width=4)
    x, y = RNG.random((60, 1, 8, 8)), np.arange(60) % 3
    classifier.partial_fit(x, y)
    learner: Any = classifier._state().learner()
    before = [buffer.clone() for buffer in learner.network.buffers()]
    assert len(before) > 10
    learner.engine.guard.largest = 1e-9  # so that any step is refused
    with pytest.raises(SteradError, match="the norm of the gradient"):
        classifier.partial_fit(x[:10], y[:10])
    restored: Any = classifier._state().learner()
    assert all(map(torch.equal, restored.network.buffers(), before))


def test_skipped_batches_and_the_largest_gradient_are_saved(tmp_path: Path) -> None:
    classifier = OnlineClassifier("er", 100, on_divergence="skip")
    classifier.partial_fit(*make_data(200))
    for _ in range(5):  # one that happens to be classified correctly has no gradient
        classifier.partial_fit(*with_outlier(1e9))
    classifier.save(tmp_path / "a.sterad")
    loaded = OnlineClassifier.load(tmp_path / "a.sterad")
    assert loaded.skipped_batches_ == classifier.skipped_batches_ > 0
    assert loaded.on_divergence == "skip"
    learner: Any = loaded._state().learner()
    assert 0 < learner.engine.guard.largest < 100


def test_calls_from_several_threads_are_serialized() -> None:
    x, y = make_data(400)
    classifier = OnlineClassifier("er", 100).partial_fit(x[:50], y[:50])
    errors: list[BaseException] = []

    def call(work: Any) -> None:
        try:
            for start in range(50, 400, 50):
                work(slice(start, start + 50))
        except BaseException as error:
            errors.append(error)

    works = [
        lambda rows: classifier.partial_fit(x[rows], y[rows]),
        lambda rows: classifier.predict_proba(x[rows]),
        lambda rows: classifier.predict(x[rows]),
    ]
    threads = [threading.Thread(target=call, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    alone = OnlineClassifier("er", 100).partial_fit(x[:50], y[:50])
    for start in range(50, 400, 50):
        alone.partial_fit(x[start : start + 50], y[start : start + 50])
    assert same(state_of(classifier), state_of(alone)), "predictions change nothing"


def test_threads_that_save_to_one_path_leave_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "a.sterad"
    classifiers = [OnlineClassifier("er", 20, seed=n).partial_fit(*make_data(30)) for n in range(3)]

    def save(classifier: OnlineClassifier) -> None:
        for _ in range(8):
            classifier.save(file)
            OnlineClassifier.load(file)

    threads = [threading.Thread(target=save, args=(one,)) for one in classifiers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert OnlineClassifier.load(file).seed in (0, 1, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["a.sterad"]


def _use(classifier: OnlineClassifier, x: Any, y: Any, results: Any) -> None:
    torch.randn(1000, 1000) @ torch.randn(1000, 1000)
    results.put(classifier.partial_fit(x, y).predict(x).tolist())


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_a_forked_process_does_not_hang() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        x, y = RNG.random((40, 1, 16, 16)), np.arange(40) % 4
        classifier = OnlineClassifier("agd-fd", 30, width=4, views=2, projection=8)
        classifier.partial_fit(x, y)
        torch.randn(1000, 1000) @ torch.randn(1000, 1000)  # starts the threads of OpenMP
        fork = multiprocessing.get_context("fork")
        results = fork.Queue()
        process = fork.Process(target=_use, args=(classifier, x, y, results))
        process.start()
        predicted = results.get(timeout=60)
        process.join(60)
        assert process.exitcode == 0
        assert predicted == classifier.partial_fit(x, y).predict(x).tolist()
    finally:
        torch.set_num_threads(before)
