"""When a run writes checkpoints: at fixed intervals, or for less than 1 % of its time."""

from itertools import pairwise

import pytest

from sterad.errors import SteradError
from sterad.experiments.checkpoint import CheckpointSchedule


def test_checkpoints_at_a_fixed_interval_and_at_task_boundaries() -> None:
    schedule = CheckpointSchedule(4)
    assert [step for step in range(1, 13) if schedule.is_due(step, {6})] == [4, 6, 8, 12]


def test_an_interval_below_one_raises() -> None:
    with pytest.raises(SteradError, match="checkpoint_every 0 is below 1"):
        CheckpointSchedule(0)


@pytest.mark.parametrize(("steps", "minimum"), [(5_000, 0.0075), (500, 0.006), (120, 0.0)])
def test_by_default_checkpoints_take_less_than_one_percent(
    monkeypatch: pytest.MonkeyPatch, steps: int, minimum: float
) -> None:
    now = 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    schedule = CheckpointSchedule(None)

    def write() -> None:
        nonlocal now
        with schedule.measure():
            now += 0.1

    times = [0.0]
    for step in range(1, steps):
        now += 0.3  # a step
        if schedule.is_due(step, ()):
            write()
            times.append(now)
    intervals = [end - start for start, end in pairwise([*times, now])]
    write()  # at the end of the run
    assert minimum < schedule.total_cost / now <= 0.008
    assert intervals[0] < 1.5, "the first comes early, because its cost is unknown"
    assert intervals[1] < 38.1, "the second waits until the first and the last are affordable"
    assert max([0.0, *intervals[2:]]) < 13.0


def test_a_task_boundary_is_saved_unless_that_takes_too_long() -> None:
    schedule = CheckpointSchedule(None)
    assert not schedule.is_due(1, {2})
    assert schedule.is_due(2, {2})
    schedule.last_cost = 3600.0
    assert not schedule.is_due(2, {2}), "it would take too long"
