"""Records with little in them but a configuration."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sterad.results.record import Moment, RunRecord, StreamFacts


@pytest.fixture
def small_record() -> Callable[..., RunRecord]:
    """Return a builder: `small_record(config, id="a", announced=True, accuracy=0.5)`."""
    return build


def build(
    config: Mapping[str, Any], id: str = "a", announced: bool = True, accuracy: float = 0.5
) -> RunRecord:
    facts = StreamFacts("clear", 20, 2, ((0,), (1,)), announced, ("a", "b"), ((10, 0), (0, 10)))
    first = Moment(1, 10, announced, True, 1, accuracy, (accuracy, None), (5, 0))
    last = Moment(2, 20, announced, True, 2, accuracy, (accuracy, accuracy), (5, 5))
    return RunRecord(
        id=id,
        config=config,
        stream=facts,
        evaluations=("task 1", "task 2"),
        moments=(first, last),
        accuracy_matrix=(first.cells, last.cells),
        final_average_accuracy=accuracy,
        average_forgetting=0.0,
        average_forgetting_released=0.0,
        backward_transfer=0.0,
        anytime_accuracy=accuracy,
        test_then_train_accuracy=None,
        seconds=1.0,
        images_per_second=20.0,
        peak_memory_bytes=1024,
        execution={},
        provenance={},
    )
