import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

from sterad.loggers import Bar, PlainLines, progress_logger

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


def on_a_terminal(words: str) -> tuple[str, str]:
    """Run Python with a real terminal as standard error; return standard output and what it shows.

    The terminal's other end is read until the child closes it, so that the child never waits.
    """
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "140", "LINES": "20"}
    child = subprocess.Popen(
        [sys.executable, "-c", words], stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not some:
            break
        shown += some
    os.close(ours)
    out, _ = child.communicate()
    assert child.returncode == 0, shown.decode()
    return out.decode().strip(), re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


def test_a_terminal_shows_rate_time_left_loss_and_accuracy() -> None:
    kind, shown = on_a_terminal(RUN)
    assert kind == "Bar"
    assert "[1/4] mine-s0" in shown
    last = shown.rstrip().splitlines()[-1]
    assert "40/40" in last
    assert "loss 1.25" in last
    assert "accuracy 81.25%" in last
    assert re.search(r"\d+\.\d steps/s", last)
    assert re.search(r"\d:\d\d:\d\d", last)
    assert "loss 2.5" in shown
    assert "accuracy -" in shown


def test_elsewhere_there_are_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(progress_logger("mine"), PlainLines)


def emitted(*events: dict[str, Any]) -> dict[str, Any]:
    with Bar("mine") as bar:
        for event in events:
            bar.emit(event)
        assert bar.progress is not None
        task = bar.progress.tasks[0]
        return task.fields | {"completed": task.completed, "total": task.total}


def test_a_step_without_loss_is_a_dash() -> None:
    shown = emitted({"event": "progress", "step": 3, "steps": 9, "loss": None})
    assert (shown["completed"], shown["total"], shown["loss"]) == (3, 9, "-")


@pytest.mark.parametrize("kind", ["start", "resume", "checkpoint", "end", "something-new"])
def test_other_events_move_nothing(kind: str) -> None:
    assert emitted({"event": kind, "step": 3, "steps": 9})["completed"] == 0


def test_before_it_is_opened_it_takes_events_and_shows_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Bar("mine").emit({"event": "progress", "step": 3, "steps": 9, "loss": None})
    assert capsys.readouterr().err == ""
