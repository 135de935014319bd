import io
from typing import Any

import pytest

from sterad.loggers import PlainLines


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("sterad.loggers.plain_lines.time", made)
    return made


def progress(step: int, loss: float | None = None) -> dict[str, Any]:
    return {"event": "progress", "step": step, "steps": 100, "loss": loss}


def test_progress_comes_now_and_then_with_rate_time_left_and_loss(clock: Clock) -> None:
    text = io.StringIO()
    with PlainLines("mine", text, every=5) as logger:
        for step in range(1, 21):
            clock.now += 0.5
            logger.emit(progress(step, loss=step / 16))
    assert text.getvalue().splitlines() == [
        "mine: step 10 of 100, 2.0 steps/s, 45 s left, loss 0.625",
        "mine: step 20 of 100, 2.0 steps/s, 40 s left, loss 1.25",
    ]


def test_steps_before_a_resume_do_not_count_for_the_rate(clock: Clock) -> None:
    text = io.StringIO()
    with PlainLines("mine", text, every=5) as logger:
        logger.emit({"event": "resume", "step": 80, "steps": 100})
        for step in range(81, 91):
            clock.now += 0.5
            logger.emit(progress(step))
    assert text.getvalue().splitlines() == [
        "mine: continues from step 80",
        "mine: step 90 of 100, 2.0 steps/s, 5 s left",
    ]


def test_evaluations_come_at_once() -> None:
    text = io.StringIO()
    event = {"event": "evaluation", "step": 3, "samples": 30, "total_samples": 120, "seen": 4}
    PlainLines("mine", text).emit(event | {"accuracy": 0.87654})
    assert text.getvalue() == "mine:  25% seen, 4 classes, 87.65% right\n"


@pytest.mark.parametrize("kind", ["start", "checkpoint", "end", "something-new"])
def test_other_events_are_silent(kind: str) -> None:
    text = io.StringIO()
    PlainLines("mine", text).emit({"event": kind, "step": 1, "steps": 2, "seconds": 0.1})
    assert text.getvalue() == ""


def test_lines_go_to_standard_error_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    PlainLines("mine").emit({"event": "resume", "step": 7})
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "mine: continues from step 7\n"


def test_a_feed_without_an_end_is_told_without_one() -> None:
    stream = io.StringIO()
    lines = PlainLines("feed", stream, every=0.0)
    lines.emit({"event": "progress", "step": 3, "steps": None, "loss": 0.5, "seconds": 1.0})
    moment = {"samples": 1200, "total_samples": None, "seen": 4, "accuracy": 0.5}
    lines.emit({"event": "evaluation", "step": 3, "steps": None, "seconds": 1.0, **moment})
    first, second = stream.getvalue().splitlines()
    assert first.startswith("feed: step 3, ")
    assert first.endswith("steps/s, loss 0.5")
    assert second == "feed: 1,200 images seen, 4 classes, 50.00% right"
