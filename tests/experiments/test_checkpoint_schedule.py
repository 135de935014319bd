from itertools import pairwise

import pytest

from sterad.errors import SteradError
from sterad.experiments.checkpoint_schedule import CheckpointSchedule


def test_so_many_steps_and_the_ends_of_tasks() -> None:
    asked = CheckpointSchedule(4)
    assert [step for step in range(1, 13) if asked.due(step, {6})] == [4, 6, 8, 12]


def test_fewer_than_one_step() -> None:
    with pytest.raises(SteradError, match="checkpoint_every 0 is below 1"):
        CheckpointSchedule(0)


@pytest.mark.parametrize(("steps", "least"), [(5_000, 0.0075), (500, 0.006), (120, 0.0)])
def test_by_default_checkpoints_take_a_hundredth_of_the_time(
    monkeypatch: pytest.MonkeyPatch, steps: int, least: float
) -> None:
    now = 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    ours = CheckpointSchedule(None)

    def write() -> None:
        nonlocal now
        with ours.writing():
            now += 0.1

    times = [0.0]
    for step in range(1, steps):
        now += 0.3  # a step
        if ours.due(step, ()):
            write()
            times.append(now)
    lost = [late - early for early, late in pairwise([*times, now])]
    write()  # at the end of the run
    assert least < ours.spent / now <= 0.008
    assert lost[0] < 1.5, "the first comes early, as nobody knows its cost"
    assert lost[1] < 38.1, "the second waits for what the first and the last take"
    assert max([0.0, *lost[2:]]) < 13.0


def test_work_below_a_second_is_worth_a_checkpoint_at_the_end_of_a_task() -> None:
    ours = CheckpointSchedule(None)
    assert not ours.due(1, {2})
    assert ours.due(2, {2})
    ours.cost = 3600.0
    assert not ours.due(2, {2}), "it would take too long"
