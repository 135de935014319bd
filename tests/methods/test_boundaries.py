"""Task boundaries: announced by the stream, or detected by new classes."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.run import prepare
from sterad.methods.agem import AGEM
from sterad.methods.base.boundaries import ChangeDetector
from sterad.streams import Boundary
from sterad.streams.blurry import half_normal_order
from sterad.streams.tasks import label_order, split_order, task_order
from tests.methods.scaffold import build

SMALL: dict[str, Any] = {
    "dataset": "synthetic",
    "classes": 4,
    "per_class": 60,
    "tasks": 2,
    "memory": 20,
    "memory_batch": 4,
    "width": 2,
    "lr": 0.001,
}
LABELS_OF_BATCHES = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=40)


def boundary_steps(stream: str, **values: Any) -> list[int]:
    """Return the steps of a run at which A-GEM handles the end of a task."""
    config = RunConfig.of(method="agem", stream=stream, **(SMALL | values))
    session, steps = prepare(config, Execution(threads=1)), list[int]()
    learner = session.learner
    learner.end_task = lambda: steps.append(session.step)  # type: ignore[attr-defined]
    for batch in session.batches():
        session.learn(batch)
    return steps


def test_boundaries_of_a_clear_stream_are_announced() -> None:
    assert boundary_steps("clear") == [12, 24]
    assert boundary_steps("clear", boundaries="announced") == [12, 24]


def test_boundaries_of_a_blurry_stream_are_detected() -> None:
    assert len(boundary_steps("blurry", scale=5.0, detection_lag=3)) >= 1
    assert boundary_steps("iid", detection_lag=100) == []


def test_boundaries_of_a_clear_stream_can_be_detected() -> None:
    steps = boundary_steps("clear", boundaries="detected", detection_lag=2)
    assert steps
    assert 24 not in steps, "no new class follows the last task"


def test_announced_boundaries_are_ignored_when_they_are_detected() -> None:
    learner = build(AGEM, problem={"announced": True}, boundaries="detected")
    calls = list[int]()
    learner.end_task = lambda: calls.append(1)  # type: ignore[method-assign]
    learner.boundary(Boundary(task=0, step=1))
    assert not calls


@pytest.mark.parametrize("name", ["agem", "ocm"])
def test_announced_boundaries_need_a_stream_that_announces_them(name: str) -> None:
    with pytest.raises(SteradError, match="boundaries=announced on a stream that announces none"):
        build(name, boundaries="announced")


def test_the_state_of_the_detector_is_saved() -> None:
    first, second = (build(AGEM, detection_lag=3) for _ in range(2))
    assert first.tasks is not None
    assert second.tasks is not None
    for labels in ([0, 1], [0, 1], [2, 3]):
        first.tasks.detect(torch.tensor(labels))
    second.load_state_dict(first.state_dict())
    # A detector without the state would miss the change at label 4.
    for label in (2, 4, 5, 6, 7, 8):
        batch = torch.tensor([label])
        assert first.tasks.detect(batch) == second.tasks.detect(batch)
    assert first.tasks.finished == second.tasks.finished > 0


def literal_changes(
    batches: list[list[int]], lag: int
) -> list[tuple[bool, int, set[int], set[int]]]:
    """Return after each batch: whether a task starts, its index, all and the old classes."""
    seen: set[int] = set()
    old: set[int] = set()
    since, task, history = lag, -1, []
    for batch in batches:
        since += 1
        changed = False
        if any(label not in seen for label in batch):
            old = set(seen)
            seen |= set(batch)
            if since >= lag:
                task += 1
                since = 0
                changed = True
        history.append((changed, task, set(seen), old))
    return history


@given(LABELS_OF_BATCHES, st.integers(0, 12))
def test_the_detector_equals_the_literal_rule(batches: list[list[int]], lag: int) -> None:
    detector, history = ChangeDetector(lag), []
    for batch in batches:
        changed = detector.observe(torch.tensor(batch, dtype=torch.int64))
        history.append((changed, detector.task, set(detector.seen), set(detector.old)))
    assert history == literal_changes(batches, lag)


@given(LABELS_OF_BATCHES, st.integers(0, 40))
def test_a_restored_detector_gives_equal_results(batches: list[list[int]], cut: int) -> None:
    first, second = ChangeDetector(5), ChangeDetector()
    for batch in batches[:cut]:
        first.observe(torch.tensor(batch, dtype=torch.int64))
    second.load_state_dict(first.state_dict())
    for batch in batches[cut:]:
        labels = torch.tensor(batch, dtype=torch.int64)
        assert first.observe(labels) == second.observe(labels)
    assert (first.task, first.seen, first.old) == (second.task, second.seen, second.old)


def test_the_first_batch_starts_task_zero() -> None:
    detector = ChangeDetector()
    assert detector.task == -1
    assert detector.observe(torch.tensor([3, 4]))
    assert (detector.task, detector.seen, detector.old) == (0, frozenset({3, 4}), frozenset[int]())


@pytest.mark.parametrize(("classes", "tasks", "low", "high"), [(10, 5, 5, 6), (100, 10, 17, 22)])
def test_the_detector_finds_the_published_numbers_of_changes(
    classes: int, tasks: int, low: int, high: int
) -> None:
    labels = np.repeat(np.arange(classes), 50_000 // classes)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order, _ = task_order(labels, split_order(label_order(classes, seed), tasks), rng)
        stream = labels[half_normal_order(order, 1500.0, rng)].reshape(-1, 10)
        detector = ChangeDetector()
        changes = sum(detector.observe(batch) for batch in torch.from_numpy(stream))
        assert changes == detector.task + 1
        assert low <= changes <= high


def test_a_negative_lag_raises() -> None:
    with pytest.raises(SteradError, match="lag of a change detector is -1"):
        ChangeDetector(-1)
