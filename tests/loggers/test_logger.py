"""The registry of loggers, the scalars of events, and the file of events."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.loggers import LOGGERS, JsonLines
from sterad.loggers.logger import event_scalars


def test_the_registered_loggers() -> None:
    assert list(LOGGERS) == ["mlflow", "tensorboard", "wandb"]


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("wandb", "wandb"),
        ("mlflow", "mlflow"),
        ("mlflow", "sqlalchemy"),
        ("tensorboard", "torch.utils.tensorboard"),
    ],
)
def test_a_missing_library_names_the_extra_to_install(
    name: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SteradError, match=r"pip install 'sterad\[tracking\]'"):
        LOGGERS[name]("mine-s0", tmp_path, {})
    assert list(tmp_path.iterdir()) == []


def test_each_kind_of_event_has_its_scalars() -> None:
    progress = {"event": "progress", "step": 3, "steps": 9, "seconds": 1.5, "loss": 0.25}
    assert event_scalars(progress) == {"loss": 0.25}
    end = {"event": "end", "final_average_accuracy": 0.5, "anytime_accuracy": 0.75, "step": 9}
    assert event_scalars(end) == {"final_average_accuracy": 0.5, "anytime_accuracy": 0.75}


def test_missing_values_are_left_out() -> None:
    assert event_scalars({"event": "progress", "loss": None}) == {}
    evaluation = {"event": "evaluation", "accuracy": 0.0, "seen": 2, "cells": [None, 0.5]}
    assert event_scalars(evaluation) == {"accuracy": 0.0, "seen": 2, "accuracy/2": 0.5}


def test_unknown_kinds_of_events_have_no_scalars() -> None:
    assert event_scalars({"event": "something-new", "loss": 3.0}) == {}


def read_events(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_flushed(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with JsonLines(file) as logger:
        for step in range(3):
            logger.emit({"event": "progress", "step": step, "loss": 0.1 + 0.2})
            assert len(read_events(file)) == step + 1
    assert read_events(file)[2] == {"event": "progress", "step": 2, "loss": 0.1 + 0.2}


def test_a_second_process_appends(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    for kind in ("start", "resume"):
        with JsonLines(file) as logger:
            logger.emit({"event": kind, "step": 0})
    assert [event["event"] for event in read_events(file)] == ["start", "resume"]


def test_unicode_is_written_as_one_line_of_ascii(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with JsonLines(file) as logger:
        logger.emit({"event": "start", "run": "größe\n\u2028"})
    assert len(file.read_bytes().splitlines()) == 1
    assert file.read_text().isascii()
    assert read_events(file) == [{"event": "start", "run": "größe\n\u2028"}]


def test_a_kill_loses_no_emitted_event(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    code = (
        "import os, sys; from pathlib import Path; from sterad.loggers import JsonLines\n"
        "with JsonLines(Path(sys.argv[1])) as logger:\n"
        "    for step in range(5): logger.emit({'event': 'progress', 'step': step})\n"
        f"    os.kill(os.getpid(), {signal.SIGKILL.value})"
    )
    result = subprocess.run([sys.executable, "-c", code, str(file)])
    assert result.returncode == -signal.SIGKILL
    assert [event["step"] for event in read_events(file)] == [0, 1, 2, 3, 4]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_device_is_reported() -> None:
    logger = JsonLines(Path("/dev/full"))
    with logger, pytest.raises(SteradError) as caught:
        logger.emit({"event": "start", "step": 0})
    message = str(caught.value)
    assert "cannot write '/dev/full': No space left on device" in message
    assert "--out" in message
    assert "continues from its last checkpoint" in message
    assert logger.file.closed


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(SteradError, match=r"no/events.jsonl': No such file"),
        JsonLines(tmp_path / "no" / "events.jsonl"),
    ):
        pass
