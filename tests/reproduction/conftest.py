"""Synthetic records: the settings of a number of the paper, with differences, and an accuracy."""

from collections.abc import Callable
from typing import Any

import pytest

from sterad.results.record import Moment, RunRecord, StreamFacts
from sterad_reproduction.numbers import Number, load_numbers
from sterad_reproduction.protocol import paper_settings

Make = Callable[..., RunRecord]


@pytest.fixture
def make() -> Make:
    """Return the builder: `make({"method": ..}, 50.0, seed=1, width=20)`; accuracy in percent."""
    return build


def build(
    settings: dict[str, Any], accuracy: float, seed: int = 0, **differences: Any
) -> RunRecord:
    """Make a record; `differences` are dotted paths of its config, or names without a dot."""
    config: dict[str, Any] = {"seed": seed, "anytime": 10}
    for path, value in {**paper_settings(settings), **differences}.items():
        part, _, field = path.rpartition(".")
        (config.setdefault(part, {}) if part else config)[field] = value
    moment = Moment(1, 10, True, True, 1, accuracy / 100, (accuracy / 100,), (5,))
    return RunRecord(
        id=f"{sorted(settings.items())}{sorted(differences.items())}{seed}",
        config=config,
        stream=StreamFacts("clear", 10, 1, ((0,),), True, ("a",), ((10,),)),
        evaluations=("task 1",),
        moments=(moment,),
        accuracy_matrix=(moment.cells,),
        final_average_accuracy=accuracy / 100,
        average_forgetting=None,
        average_forgetting_released=None,
        backward_transfer=None,
        anytime_accuracy=accuracy / 100,
        test_then_train_accuracy=None,
        seconds=1.0,
        images_per_second=20.0,
        peak_memory_bytes=1024,
        execution={},
        provenance={},
    )


@pytest.fixture
def number() -> Callable[..., Number]:
    """Return a function that finds the number of a table with given settings."""

    def find(table: int, **settings: Any) -> Number:
        (number,) = [
            n
            for n in load_numbers()
            if n.table.number == table
            and not n.is_quoted
            and settings.items() <= n.settings.items()
        ]
        return number

    return find
