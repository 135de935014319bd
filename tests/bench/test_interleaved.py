"""Interleaved timing: who comes when, and what is made of it."""

import pytest

from sterad.bench.interleaved import Spread, Timings, Turns, interleaved


def test_contenders_take_turns_and_the_order_turns_round() -> None:
    called: list[str] = []
    timings = interleaved(
        {"a": lambda: called.append("a"), "b": lambda: called.append("b")}, Turns(rounds=2)
    )
    assert called == ["b", "a", "a", "b", "b", "a"]
    assert [len(one) for one in timings.seconds.values()] == [2, 2], "the first does not count"


def test_short_contenders_take_more_turns_whatever_the_first_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, takes = 0.0, iter([100.0])
    monkeypatch.setattr("time.perf_counter", lambda: now)

    def act() -> None:
        nonlocal now
        now += next(takes, 1.0)

    timings = interleaved({"a": act}, Turns(rounds=1, seconds=10))
    assert timings.seconds["a"] == [1.0] * 10


def test_ratios_are_taken_within_a_round() -> None:
    # The second round was three times as slow for both: the ratio does not see it.
    timings = Timings({"step": [2.0, 6.0], "limit": [1.0, 3.0]})
    assert timings.ratio("step", "limit") == Spread(2.0, 2.0, 2.0)
    assert timings.above("step", "limit") == Spread(2.0, 1.5, 2.5)
    assert timings.fastest("step", "limit") == "limit"


def test_one_round_has_no_spread() -> None:
    assert Spread.of([4.0]) == Spread(4.0, 4.0, 4.0)
    assert str(Spread.of([1.0, 2.0, 3.0])) == "2.00 (1.50 to 2.50)"
