"""Interleaved timing: the order of calls, and the statistics."""

import pytest

from sterad.bench.timing import Rounds, Spread, Timings, time_interleaved


def test_functions_take_turns_and_the_order_alternates() -> None:
    calls: list[str] = []
    timings = time_interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, Rounds(count=2)
    )
    assert calls == ["b", "a", "a", "b", "b", "a"]
    lengths = [len(seconds) for seconds in timings.seconds.values()]
    assert lengths == [2, 2], "the first round is discarded"


def test_short_functions_get_more_rounds_whatever_the_warm_up_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, durations = 0.0, iter([100.0])
    monkeypatch.setattr("time.perf_counter", lambda: now)

    def function() -> None:
        nonlocal now
        now += next(durations, 1.0)

    timings = time_interleaved({"a": function}, Rounds(count=1, seconds=10))
    assert timings.seconds["a"] == [1.0] * 10


def test_a_slow_machine_gets_fewer_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now)

    def function() -> None:
        nonlocal now
        now += 7.0

    for limit, expected in ((20.0, 3), (1.0, 1)):
        timings = time_interleaved({"a": function}, Rounds(count=5, limit=limit))
        assert timings.seconds["a"] == [7.0] * expected


def test_ratios_are_computed_within_a_round() -> None:
    # The second round is three times as slow for both: the ratio stays the same.
    timings = Timings({"step": [2.0, 6.0], "bare": [1.0, 3.0]})
    assert timings.ratio("step", "bare") == Spread(2.0, 2.0, 2.0)
    assert timings.difference("step", "bare") == Spread(2.0, 1.5, 2.5)


def test_one_round_has_no_spread() -> None:
    assert Spread.of([4.0]) == Spread(4.0, 4.0, 4.0)
    assert str(Spread.of([1.0, 2.0, 3.0])) == "2.00 (1.50 to 2.50)"
