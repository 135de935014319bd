"""Learners on features: scores equal the batch formulas after any order and any splitting."""

import json
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from sterad import OnlineClassifier, RunConfig, run
from sterad.engine import Execution
from sterad.errors import SteradError
from sterad.experiments.cost import estimate
from sterad.experiments.live import live_config
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.base.closed_form import ClosedForm, PooledClosedForm
from sterad.methods.fecam import FeCAM
from sterad.methods.randumb import RanDumb
from sterad.methods.ridge import Ridge
from sterad.streams import Batch
from sterad.testing.method import same
from tests.methods.scaffold import assert_resumes

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Formula = Callable[[Any, Floats, Labels, Floats], Floats]
D, BLOCK_ROWS = 6, ClosedForm.block_rows
NAMES = ("fecam", "ncm", "randumb", "ridge", "slda")
FIELDS: dict[str, dict[str, Any]] = {"randumb": {"projection": 20}}
"""Few random features, so that the tests are fast."""


def build(name: str, classes: int | None = None, seed: int = 3, **fields: Any) -> Any:
    cls = METHODS[name]
    problem = Problem((D,), classes, memory=0, encoder="flatten", seed=seed)
    learner = build_learner(cls, cls.Config(**(FIELDS.get(name, {}) | fields)), problem)
    assert isinstance(learner, ClosedForm)
    return learner


def make_rows(
    n: int, classes: int = 5, seed: int = 0, spread: float = 1.0
) -> tuple[Floats, Labels]:
    """Return correlated rows around one mean per class; labels have gaps.

    spread: of the means.
    """
    rng = np.random.default_rng(seed)
    means, mixing = spread * rng.standard_normal((classes, D)), rng.standard_normal((D, D))
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    return means[y] + rng.standard_normal((n, D)) @ mixing / 2, 3 * y


def learn(learner: ClosedForm, x: Floats, y: Labels, sizes: list[int] | None = None) -> None:
    """Observe rows in batches of these sizes, which are repeated, or all at once."""
    start, number = 0, 0
    while start < len(x):
        size = sizes[number % len(sizes)] if sizes else len(x)
        part = slice(start, start + size)
        learner.observe(Batch(torch.from_numpy(x[part]), torch.from_numpy(y[part])))
        start, number = start + size, number + 1


def scores_of(learner: ClosedForm, x: Floats) -> Floats:
    scores, labels = learner.scores(torch.from_numpy(x))
    assert torch.equal(labels, learner.seen)
    numbers: Floats = scores.numpy()
    return numbers


def without_common_term(scores: Floats) -> Floats:
    """Remove what all classes share, which changes neither predictions nor probabilities."""
    differences: Floats = scores - scores.mean(axis=1, keepdims=True)
    return differences


def ncm_scores(learner: Any, x: Floats, y: Labels, test: Floats) -> Floats:
    if learner.config.normalize:
        x, test = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, test))
    means = {c: x[y == c].mean(axis=0) for c in sorted(set(y))}
    variance = np.mean([(row - means[c]) ** 2 for row, c in zip(x, y, strict=True)])
    return np.array([[-np.sum((t - means[c]) ** 2) / (2 * variance) for c in means] for t in test])


def slda_scores(learner: Any, x: Floats, y: Labels, test: Floats) -> Floats:
    means = {c: x[y == c].mean(axis=0) for c in sorted(set(y))}
    differences = [row - means[c] for row, c in zip(x, y, strict=True)]
    covariance = np.mean([np.outer(one, one) for one in differences], axis=0)
    d, eigenvalues = len(covariance), np.linalg.eigvalsh(covariance)
    share = learner.config.strength
    if learner.config.shrinkage == "oas":
        squares, square = np.sum(eigenvalues**2), np.sum(eigenvalues) ** 2
        above = (1 - 2 / d) * squares + square
        share = min(above / ((len(x) + 1 - 2 / d) * (squares - square / d)), 1)
    shrunk = (1 - share) * covariance + share * eigenvalues.mean() * np.eye(d)
    precision = np.linalg.inv(shrunk)
    return np.array([[-(t - m) @ precision @ (t - m) / 2 for m in means.values()] for t in test])


def randumb_scores(learner: RanDumb, x: Floats, y: Labels, test: Floats) -> Floats:
    frequencies, phases = learner.frequencies.numpy(), learner.phases.numpy()
    h, h_test = (
        math.sqrt(2 / len(phases)) * np.cos(rows @ frequencies + phases) for rows in (x, test)
    )
    return slda_scores(learner, h, y, h_test)


def ridge_scores(learner: Ridge, x: Floats, y: Labels, test: Floats) -> Floats:
    if learner.weights is not None:
        x, test = (np.maximum(rows @ learner.weights.numpy(), 0) for rows in (x, test))
    targets = (y[:, None] == np.array(sorted(set(y)))).astype(np.float64)
    center, level = x.mean(axis=0), targets.mean(axis=0)
    if not learner.config.intercept:
        center, level = 0 * center, 0 * level
    x, targets = x - center, targets - level
    penalty = learner.config.penalty * np.mean(x**2) * np.eye(x.shape[1])
    scores: Floats = (test - center) @ np.linalg.solve(x.T @ x + penalty, x.T @ targets) + level
    return scores


def fecam_scores(learner: Any, x: Floats, y: Labels, test: Floats) -> Floats:
    x, test = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, test))
    columns = []
    for c in sorted(set(y)):
        rows, mean = x[y == c], x[y == c].mean(axis=0)
        covariance = (rows - mean).T @ (rows - mean) / len(rows)
        covariance += learner.config.strength * np.diag(covariance).mean() * np.eye(len(mean))
        deviation = np.sqrt(np.diag(covariance))
        inverse = np.linalg.inv(covariance / np.outer(deviation, deviation))
        columns.append([-(t - mean) @ inverse @ (t - mean) for t in test])
    return np.array(columns).T


FORMULAS: dict[str, Formula] = {
    "fecam": fecam_scores,
    "ncm": ncm_scores,
    "randumb": randumb_scores,
    "ridge": ridge_scores,
    "slda": slda_scores,
}
HAS_COMMON_TERM = {"ncm", "randumb", "slda"}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("ncm", {"normalize": True}),
    ("slda", {"shrinkage": "fixed", "strength": 0.01}),
    ("ridge", {"intercept": False}),
    ("ridge", {"projection": 15}),
    ("fecam", {"strength": 0.2}),
]


def assert_exact(name: str, learner: ClosedForm, x: Floats, y: Labels, test: Floats) -> None:
    """Require the scores of the batch formula on all rows."""
    found, expected = scores_of(learner, test), FORMULAS[name](learner, x, y, test)
    if name in HAS_COMMON_TERM:
        found, expected = without_common_term(found), without_common_term(expected)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * max(scale, 1))


@pytest.mark.parametrize(("name", "fields"), VARIANTS)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 150), min_size=1, max_size=6),
    n=st.integers(30, 2 * BLOCK_ROWS + 40),
)
def test_scores_equal_the_batch_formula(
    name: str, fields: dict[str, Any], seed: int, sizes: list[int], n: int
) -> None:
    # Each class has so many rows that every covariance has a variance.
    x, y = make_rows(n, classes=3, seed=seed)
    x, y = np.concatenate([x, x + 0.1]), np.concatenate([y, y])
    order = np.random.default_rng(seed).permutation(len(x))
    learner = build(name, **fields)
    learn(learner, x[order], y[order], sizes)
    assert_exact(name, learner, x, y, make_rows(20, seed=1)[0])


@pytest.mark.parametrize("name", ["ncm", "slda", "ridge"])
@pytest.mark.parametrize("sizes", [[1], [7], [1000]])
def test_a_large_common_offset_does_not_cancel(name: str, sizes: list[int]) -> None:
    x, y = make_rows(300)
    # A power of two, so that the sum has the bits of the rows and the formula can do without it.
    x = np.round(x * 2**20) / 2**20
    learner = build(name)
    learn(learner, x + 2.0**14, y, sizes)
    test = np.round(make_rows(20, seed=1)[0] * 2**20) / 2**20
    found = without_common_term(scores_of(learner, test + 2.0**14))
    expected = without_common_term(FORMULAS[name](learner, x, y, test))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_classes_that_come_one_after_the_other_and_scores_after_each_row(name: str) -> None:
    x, y = make_rows(60, classes=20)
    order = np.argsort(y, kind="stable")[::-1]  # descending labels: the columns are ascending
    x, y, learner = x[order], y[order], build(name)
    for stop in range(1, len(x) + 1):
        learn(learner, x[stop - 1 : stop], y[stop - 1 : stop])
        scores, labels = learner.immediate_scores(torch.from_numpy(x[:3]))
        assert labels.tolist() == sorted(set(y[:stop].tolist()))
        assert scores.shape == (3, len(labels))
        assert bool(torch.isfinite(scores).all())
    if name != "fecam":  # its formula has no covariance of single rows
        assert_exact(name, learner, x, y, x[:5])


@pytest.mark.parametrize("name", NAMES)
def test_one_row_of_each_class_is_its_own_prediction(name: str) -> None:
    x, y = make_rows(5)
    learner = build(name)
    learn(learner, x, y)
    assert learner.predict(torch.from_numpy(x)).tolist() == y.tolist()


def test_slda_equals_the_discriminants_of_scikit_learn() -> None:
    x, y = make_rows(200)
    learner = build("slda", shrinkage="fixed", strength=0.1)
    learn(learner, x, y, [13])
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1).fit(x, y)
    test = make_rows(20, seed=1)[0]
    expected = peer.decision_function(test) - np.log(peer.priors_)  # ours has no prior
    found = without_common_term(scores_of(learner, test))
    np.testing.assert_allclose(found, without_common_term(expected), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_learner_has_equal_bits(name: str) -> None:
    x, y = make_rows(300)
    learner, fresh = build(name), build(name)
    learn(learner, x[:200], y[:200], [7])
    more = Batch(torch.from_numpy(x[200:]), torch.from_numpy(y[200:] + 2))
    assert_resumes(learner, fresh, more)
    assert same(learner.scores(more.x), fresh.scores(more.x))


@pytest.mark.parametrize("name", NAMES)
def test_a_state_is_independent_of_the_learners_that_share_it(name: str) -> None:
    x, y = make_rows(200)
    learner, other = build(name), build(name)
    learn(learner, x, y)
    state = learner.state_dict()
    other.load_state_dict(state)
    before = scores_of(other, x[:3])
    learn(learner, x + 1, y)
    assert np.array_equal(scores_of(other, x[:3]), before)
    other.load_state_dict(state)
    assert np.array_equal(scores_of(other, x[:3]), before)


def wrong_value(value: Tensor) -> Tensor:
    return torch.full_like(value, torch.nan)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_state_is_refused(name: str) -> None:
    learner, fresh = build(name), build(name)
    learn(learner, *make_rows(BLOCK_ROWS + 50), [BLOCK_ROWS])
    learn(learner, *make_rows(7, classes=7))  # two of the classes have waiting rows only
    state = learner.state_dict()
    damaged: dict[str, Any] = {
        "counts": [wrong_value(state["counts"]), 0 * state["counts"], state["counts"][1:]],
        "means": [wrong_value(state["means"]), state["means"][1:], state["means"].float()],
        "labels": [state["labels"] + 1, state["labels"][:-1], state["labels"].double()],
        "scatter": [wrong_value, lambda t: t[1:]],
        "waiting": [wrong_value, lambda t: t[:, 1:], lambda t: t[1:]],
        "waiting_rows": [lambda t: t - 7, lambda t: t + 1, lambda t: t.double()],
        "squares": [wrong_value, lambda t: t[None]],
        "scatters": [lambda t: t[1:], lambda t: [wrong_value(t[0]), *t[1:]], tuple],
    }
    if name == "fecam":  # no row of it waits
        del damaged["waiting"], damaged["waiting_rows"]
    for key in set(damaged) & set(state):
        for wrong in damaged[key]:
            value = wrong(state[key]) if callable(wrong) else wrong
            with pytest.raises(ValueError, match=" must be"):
                fresh.load_state_dict(state | {key: value})


@pytest.mark.parametrize("name", NAMES)
def test_invalid_rows_change_nothing(name: str) -> None:
    x, y = make_rows(20)
    learner = build(name, classes=16)
    with pytest.raises(SteradError, match="no row has been learned: observe a batch"):
        learner.scores(torch.from_numpy(x))
    learn(learner, x, y)
    before = learner.state_dict()
    for rows, labels, message in (
        (np.where(x == x[3, 2], np.nan, x), y + 1, "NaN or infinite"),
        (x[:, 1:], y + 1, "shape"),
        (x, y + 5, "outside the 16 declared classes"),
    ):
        with pytest.raises(SteradError, match=message):
            learn(learner, rows, labels)
    assert same(learner.state_dict(), before)


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_is_kept_until_the_next_row(name: str) -> None:
    x, y = make_rows(40)
    learner, solutions = build(name), []
    for _ in range(2):
        learn(learner, x, y)
        learner.consolidate()
        solutions.append(learner._solution)
        learner.predict(torch.from_numpy(x))
        learner.immediate_scores(torch.from_numpy(x))
        assert learner._solution is solutions[-1]
    assert solutions[0] is not solutions[1]


def test_fecam_factorizes_only_classes_with_new_rows() -> None:
    x, y = make_rows(40)
    learner: FeCAM = build("fecam")
    learn(learner, x, y)
    learner.consolidate()
    kept = dict(learner.factors)
    learn(learner, x[:1], y[:1])
    learner.consolidate()
    renewed = [row for row in kept if learner.factors[row] is not kept[row]]
    assert renewed == [learner.row_of[int(y[0])]]


@pytest.mark.parametrize("name", NAMES)
def test_the_cost_of_a_step_does_not_depend_on_the_rows_seen(name: str) -> None:
    x, y = make_rows(4 * BLOCK_ROWS)
    sizes = []
    learner = build(name)
    for _ in range(2):
        learn(learner, x, y, [64])
        state = [t for t in learner.state_dict().values() if isinstance(t, Tensor)]
        sizes.append(sum(t.numel() for t in state))
    assert sizes[0] == sizes[1]


def test_the_capacity_for_classes_is_doubled() -> None:
    x = np.random.default_rng(0).standard_normal((500, D))
    learner, capacities = build("slda"), set()
    for label in range(500):
        learn(learner, x[label : label + 1], np.array([label]))
        capacities.add(len(learner.means))
    assert sorted(capacities) == [8, 128, 256, 512]
    assert len(learner.state_dict()["labels"]) == 500


def test_only_random_features_depend_on_the_seed() -> None:
    x, y = make_rows(40)
    variants: list[tuple[str, dict[str, Any], bool]] = [
        *((name, {}, name == "randumb") for name in NAMES),
        ("ridge", {"projection": 9}, True),
    ]
    for name, fields, uses_seed in variants:
        first, second = (build(name, seed=seed, **fields) for seed in (0, 1))
        for learner in (first, second):
            learn(learner, x, y)
        assert first.uses_seed == uses_seed
        assert np.array_equal(scores_of(first, x), scores_of(second, x)) != uses_seed


@pytest.mark.parametrize(
    ("name", "message"),
    [("slda", "set a larger strength"), ("ridge", "set a larger penalty")],
)
def test_a_singular_covariance_is_an_error_with_a_remedy(name: str, message: str) -> None:
    tiny: dict[str, dict[str, Any]] = {
        "slda": {"shrinkage": "fixed", "strength": 1e-300},
        "ridge": {"penalty": 1e-300},
    }
    learner = build(name, **tiny[name])
    x, y = make_rows(40)
    x = x[:, :2] @ np.random.default_rng(0).standard_normal((2, D))
    learn(learner, x, y)
    with pytest.raises(SteradError, match=f"6 features is singular in float64: {message}"):
        learner.scores(torch.from_numpy(x))


def test_images_are_flattened_and_statistics_are_float64() -> None:
    problem = Problem((1, 4, 4), 3, memory=10, encoder="flatten", execution=Execution())
    rng = torch.Generator().manual_seed(0)
    batch = Batch(torch.rand(30, 1, 4, 4, generator=rng), torch.arange(30) % 3)
    for name in ("ncm", "slda"):
        images = build_learner(METHODS[name], METHODS[name].Config(), problem)
        rows = build_learner(
            METHODS[name], METHODS[name].Config(), replace(problem, input_shape=(16,))
        )
        images.observe(batch)
        rows.observe(Batch(batch.x.flatten(1), batch.y))
        assert same(images.state_dict(), rows.state_dict())
        assert images.state_dict()["means"].dtype == torch.float64
        assert images.images == 0
        assert images.memory_counts(3) is None


@pytest.mark.parametrize("name", NAMES)
def test_no_network_has_a_cost(name: str) -> None:
    cost = METHODS[name].cost(METHODS[name].Config(), batch_size=10, memory=100, samples=1000)
    assert (cost.step, cost.consolidation) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_estimator_learns_features_with_any_labels(name: str) -> None:
    x, y = make_rows(300, classes=3, spread=4.0)
    names = np.array(["ant", "bee", "cat"])[y // 3]
    fields: dict[str, Any] = {"projection": 200, "kernel_width": 3.0} if name == "randumb" else {}
    classifier = OnlineClassifier(name, **fields)
    for part in np.array_split(np.argsort(names), 7):
        classifier.partial_fit(x[part].astype(np.float32), names[part])
    assert (classifier.predict(x.astype(np.float32)) == names).mean() > 0.95
    assert classifier.predict_proba(x[:4].astype(np.float32)).shape == (4, 3)


def test_less_than_a_block_of_rows_waits() -> None:
    learner: PooledClosedForm = build("slda")
    x, y = make_rows(3 * BLOCK_ROWS)
    for size, waiting in ((1, 1), (BLOCK_ROWS - 2, BLOCK_ROWS - 1), (1, 0), (3 * BLOCK_ROWS, 0)):
        learn(learner, x[:size], y[:size])
        assert learner.state_dict()["waiting"].shape == (waiting, D)


def test_rows_that_wait_are_copies() -> None:
    learner, x = build("ncm"), torch.zeros(3, D, dtype=torch.float64)
    learner.observe(Batch(x, torch.arange(3)))
    before = learner.scores(x + 1)
    x += 1
    learner.consolidate()
    assert same(learner.state_dict()["waiting"], torch.zeros(3, D, dtype=torch.float64))
    assert same(learner.scores(x), before)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_has_no_images_through_a_network(name: str, tmp_path: Path) -> None:
    small = {"per_class": 30, "test_per_class": 10, "anytime": 2, "tasks": 5}
    config = RunConfig.of(method=name, dataset="digits", **(small | FIELDS.get(name, {})))
    assert config.settings.encoder == "flatten"
    assert estimate(config, [])[0] > 0
    record = run(config, tmp_path, Execution(threads=1))
    assert (record.images_per_step, record.images_per_second) == (0, 0)
    assert record.losses == ()
    assert record.final_average_accuracy > (0.2 if name == "randumb" else 0.8)
    assert "resnet18" not in json.dumps(record.config)
    assert estimate(config, [record])[0] == record.seconds


def test_a_live_run_learns_features_themselves(tmp_path: Path) -> None:
    x, y = make_rows(400, spread=4.0)
    feed = [(x[i : i + 10].astype(np.float32), y[i : i + 10]) for i in range(0, 400, 10)]
    record = run(live_config(method="slda", stretch=100), tmp_path, Execution(threads=1), feed=feed)
    assert record.moments[-1].accuracy > 0.95
    assert record.config["encoder"] == "flatten"


@pytest.mark.parametrize("name", NAMES)
def test_a_fork_and_its_origin_learn_on_their_own(name: str) -> None:
    x, y = make_rows(2 * BLOCK_ROWS)
    learner, alone = build(name), build(name)
    for one in (learner, alone):
        learn(one, x[:50], y[:50])
    fork, before = learner.fork(), deepcopy(learner.state_dict())
    learn(learner, x[50:], y[50:])
    assert same(fork.state_dict(), before)
    learn(fork, x[200:], y[200:])
    learn(alone, x[50:], y[50:])
    assert same(learner.state_dict(), alone.state_dict())
