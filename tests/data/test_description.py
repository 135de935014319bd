import dataclasses

import pytest

from sterad.data import DATASETS, Defaults


def test_the_built_in_datasets_are_known_by_name() -> None:
    assert {"digits", "synthetic"} <= set(DATASETS)


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_a_description_is_frozen_and_loads_what_its_defaults_promise(name: str) -> None:
    description = DATASETS[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        description.root = "elsewhere"  # type: ignore[attr-defined]
    data, defaults = description.load(), description.defaults()
    assert data.name == name
    assert data.classes % defaults.tasks == 0
    per_task = len(data.train_labels) / defaults.tasks
    assert defaults.scale == pytest.approx(0.15 * per_task, abs=0.5)


@pytest.mark.parametrize(("classes", "tasks"), [(10, 5), (8, 4), (9, 3), (7, 1), (1, 1), (200, 5)])
def test_tasks_are_the_largest_divisor_up_to_five(classes: int, tasks: int) -> None:
    assert Defaults.for_counts(classes, 1000).tasks == tasks
