"""Progress of a run: a bar on a terminal, lines of text elsewhere."""

import io
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

from sterad.loggers import ProgressBar, ProgressLines, progress_logger

RUN = """
import time
from sterad.loggers import progress_logger
with progress_logger("[1/4] mine-s0") as logger:
    logger.emit({"event": "start", "step": 0, "steps": 40})
    for step in range(1, 41):
        loss = 2.5 if step < 30 else 1.25
        logger.emit({"event": "progress", "step": step, "steps": 40, "loss": loss})
        time.sleep(0.02)
        if step == 30:
            logger.emit({"event": "evaluation", "step": step, "steps": 40, "accuracy": 0.8125})
print(type(logger).__name__)
"""


def run_on_terminal(code: str) -> tuple[str, str]:
    """Run Python with a terminal as standard error; return standard output and the screen.

    The terminal is read until the child closes it, so that the child never blocks on a write.
    """
    parent_end, child_end = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "140", "LINES": "20"}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=child_end, env=environment
    )
    os.close(child_end)
    shown = b""
    while True:
        try:
            data = os.read(parent_end, 4096)
        except OSError:  # on Linux, after the child has closed its end
            break
        if not data:
            break
        shown += data
    os.close(parent_end)
    out, _ = child.communicate()
    assert child.returncode == 0, shown.decode()
    return out.decode().strip(), re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


def test_a_terminal_shows_rate_time_left_loss_and_accuracy() -> None:
    kind, shown = run_on_terminal(RUN)
    assert kind == "ProgressBar"
    assert "[1/4] mine-s0" in shown
    last = shown.rstrip().splitlines()[-1]
    assert "40/40" in last
    assert "loss 1.25" in last
    assert "accuracy 81.25%" in last
    assert re.search(r"\d+\.\d steps/s", last)
    assert re.search(r"\d:\d\d:\d\d", last)
    assert "loss 2.5" in shown
    assert "accuracy -" in shown


def test_without_a_terminal_progress_is_printed_in_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert isinstance(progress_logger("mine"), ProgressLines)


def bar_after(*events: dict[str, Any]) -> dict[str, Any]:
    with ProgressBar("mine") as bar:
        for event in events:
            bar.emit(event)
        task = bar.progress.tasks[0]
        return task.fields | {"completed": task.completed, "total": task.total}


def test_a_missing_loss_is_shown_as_a_dash() -> None:
    shown = bar_after({"event": "progress", "step": 3, "steps": 9, "loss": None})
    assert (shown["completed"], shown["total"], shown["loss"]) == (3, 9, "-")


@pytest.mark.parametrize("kind", ["start", "resume", "checkpoint", "end", "something-new"])
def test_other_events_do_not_move_the_bar(kind: str) -> None:
    assert bar_after({"event": kind, "step": 3, "steps": 9})["completed"] == 0


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("sterad.loggers.progress.time", clock)
    return clock


def progress(step: int, loss: float | None = None) -> dict[str, Any]:
    return {"event": "progress", "step": step, "steps": 100, "loss": loss}


def test_progress_is_printed_every_few_seconds_with_rate_time_left_and_loss(clock: Clock) -> None:
    text = io.StringIO()
    with ProgressLines("mine", text, every=5) as logger:
        for step in range(1, 21):
            clock.now += 0.5
            logger.emit(progress(step, loss=step / 16))
    assert text.getvalue().splitlines() == [
        "mine: step 10 of 100, 2.0 steps/s, 45 s left, loss 0.625",
        "mine: step 20 of 100, 2.0 steps/s, 40 s left, loss 1.25",
    ]


def test_the_rate_excludes_steps_before_a_resume(clock: Clock) -> None:
    text = io.StringIO()
    with ProgressLines("mine", text, every=5) as logger:
        logger.emit({"event": "resume", "step": 80, "steps": 100})
        for step in range(81, 91):
            clock.now += 0.5
            logger.emit(progress(step))
    assert text.getvalue().splitlines() == [
        "mine: continues from step 80",
        "mine: step 90 of 100, 2.0 steps/s, 5 s left",
    ]


def test_evaluations_are_printed_at_once() -> None:
    text = io.StringIO()
    event = {"event": "evaluation", "step": 3, "samples": 30, "total_samples": 120, "seen": 4}
    ProgressLines("mine", text).emit(event | {"accuracy": 0.87654})
    assert text.getvalue() == "mine:  25% seen, 4 classes, accuracy 87.65%\n"


@pytest.mark.parametrize("kind", ["start", "checkpoint", "end", "something-new"])
def test_other_events_print_nothing(kind: str) -> None:
    text = io.StringIO()
    ProgressLines("mine", text).emit({"event": kind, "step": 1, "steps": 2, "seconds": 0.1})
    assert text.getvalue() == ""


def test_lines_go_to_standard_error_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLines("mine").emit({"event": "resume", "step": 7})
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "mine: continues from step 7\n"


def test_a_feed_without_an_end_has_no_total() -> None:
    stream = io.StringIO()
    lines = ProgressLines("feed", stream, every=0.0)
    lines.emit({"event": "progress", "step": 3, "steps": None, "loss": 0.5, "seconds": 1.0})
    moment = {"samples": 1200, "total_samples": None, "seen": 4, "accuracy": 0.5}
    lines.emit({"event": "evaluation", "step": 3, "steps": None, "seconds": 1.0, **moment})
    first, second = stream.getvalue().splitlines()
    assert first.startswith("feed: step 3, ")
    assert first.endswith("steps/s, loss 0.5")
    assert second == "feed: 1,200 images seen, 4 classes, accuracy 50.00%"
