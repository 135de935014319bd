import pytest

from sterad.errors import SteradError
from sterad.experiments.pace import Pace


def test_so_many_steps_and_the_ends_of_tasks() -> None:
    asked = Pace(4)
    assert [step for step in range(1, 13) if asked.due(step, {6})] == [4, 6, 8, 12]


def test_fewer_than_one_step() -> None:
    with pytest.raises(SteradError, match="checkpoint_every 0 is below 1"):
        Pace(0)


def test_by_default_checkpoints_take_a_hundredth_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, spent = 0.0, 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    ours = Pace(None)
    lost, written = 0.0, 0.0
    for step in range(1, 5_000):
        now += 0.3  # a step
        lost = max(lost, now - written)
        if ours.due(step, ()):
            with ours.writing():
                now, spent = now + 0.1, spent + 0.1
            written = now
    assert 0.009 < spent / now < 0.0105
    assert lost < 10.5


def test_work_below_a_second_is_worth_a_checkpoint_at_the_end_of_a_task() -> None:
    ours = Pace(None)
    assert not ours.due(1, {2})
    assert ours.due(2, {2})
    ours.cost = 3600.0
    assert not ours.due(2, {2}), "it would take too long"
