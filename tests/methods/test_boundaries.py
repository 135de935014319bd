"""Ends of tasks, announced or detected, by one switch."""

from typing import Any

import pytest
import torch

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.run import prepare
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.agem import AGEM
from sterad.streams import Boundary

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


def learner(announced: bool, **fields: Any) -> AGEM:
    made = build_learner(
        METHODS["agem"],
        METHODS["agem"].Config(**fields),
        Problem((1, 8, 8), 4, 12, width=2, announced=announced),
    )
    assert isinstance(made, AGEM)
    return made


def ends(stream: str, **values: Any) -> list[int]:
    """Return the steps after which a method on a real stream has heard of an end."""
    config = RunConfig.of(method="agem", stream=stream, **(SMALL | values))
    session, heard = prepare(config, Execution(threads=1)), list[int]()
    made = session.learner
    made.end_task = lambda: heard.append(session.step)  # type: ignore[attr-defined]
    for batch in session.batches():
        session.learn(batch)
    return heard


def test_announced_ends_of_a_clear_stream() -> None:
    assert ends("clear") == [12, 24]
    assert ends("clear", boundaries="announced") == [12, 24]


def test_detected_ends_on_a_blurry_stream() -> None:
    assert len(ends("blurry", scale=5.0, detection_lag=3)) >= 1
    assert ends("iid", detection_lag=100) == []


def test_detection_may_be_asked_for_where_ends_are_announced() -> None:
    detected = ends("clear", boundaries="detected", detection_lag=2)
    assert detected
    assert set(detected).isdisjoint({24}), "the last end is announced, no later image shows it"


def test_announced_ends_are_not_heard_by_who_detects() -> None:
    made = learner(announced=True, boundaries="detected")
    heard = list[int]()
    made.end_task = lambda: heard.append(1)  # type: ignore[method-assign]
    made.boundary(Boundary(task=0, step=1))
    assert not heard


@pytest.mark.parametrize("name", ["agem", "ocm"])
def test_announced_ends_of_a_stream_that_announces_none_are_refused(name: str) -> None:
    problem = Problem((1, 8, 8), 4, 12, width=2, announced=False)
    with pytest.raises(SteradError, match="boundaries=announced on a stream that announces none"):
        build_learner(METHODS[name], METHODS[name].Config(boundaries="announced"), problem)


def test_a_round_trip_keeps_what_the_detector_knows() -> None:
    first, second = (learner(announced=False, detection_lag=3) for _ in range(2))
    assert first.tasks is not None
    assert second.tasks is not None
    labels = [torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([2, 3])]
    for y in labels:
        first.tasks.detect(y)
    second.load_state_dict(first.state_dict())
    for y in [torch.tensor([2, 3])] * 6:
        assert first.tasks.detect(y) == second.tasks.detect(y)
