"""Events of a run of two tasks that is killed after step 3 and resumed from step 2."""

from typing import Any

import pytest


def _event(kind: str, step: int, **values: Any) -> dict[str, Any]:
    return {"event": kind, "step": step, "steps": 4, "seconds": step / 2} | values


@pytest.fixture
def killed() -> list[dict[str, Any]]:
    """Return the events of the first process; the loss of step 3 is not in the checkpoint."""
    return [
        _event("start", 0, run="mine-s0"),
        _event("progress", 1, loss=2.5),
        _event("progress", 2, loss=1.5),
        _event("evaluation", 2, accuracy=0.5, seen=2, cells=[0.5, None], memory=[1, 1]),
        _event("checkpoint", 2),
        _event("progress", 3, loss=99.0),
    ]


@pytest.fixture
def resumed() -> list[dict[str, Any]]:
    """Return the events of the second process."""
    return [
        _event("resume", 2, run="mine-s0"),
        _event("progress", 3, loss=1.25),
        _event("progress", 4, loss=None),
        _event("evaluation", 4, accuracy=0.75, seen=4, cells=[0.5, 1.0], memory=[1, 1]),
        _event("end", 4, final_average_accuracy=0.75, anytime_accuracy=0.625),
    ]
