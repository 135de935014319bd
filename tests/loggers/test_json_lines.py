import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.loggers import JsonLines


def events(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_there_at_once(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with JsonLines(file) as logger:
        for step in range(3):
            logger.emit({"event": "progress", "step": step, "loss": 0.1 + 0.2})
            assert len(events(file)) == step + 1
    assert events(file)[2] == {"event": "progress", "step": 2, "loss": 0.1 + 0.2}


def test_a_second_process_appends(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    for event in ("start", "resume"):
        with JsonLines(file) as logger:
            logger.emit({"event": event, "step": 0})
    assert [one["event"] for one in events(file)] == ["start", "resume"]


def test_text_of_any_language_is_one_line_of_ascii(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with JsonLines(file) as logger:
        logger.emit({"event": "start", "run": "größe\n\u2028"})
    assert len(file.read_bytes().splitlines()) == 1
    assert file.read_text().isascii()
    assert events(file) == [{"event": "start", "run": "größe\n\u2028"}]


def test_a_kill_loses_nothing_that_was_emitted(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    words = (
        "import os, sys; from pathlib import Path; from sterad.loggers import JsonLines\n"
        "with JsonLines(Path(sys.argv[1])) as logger:\n"
        "    for step in range(5): logger.emit({'event': 'progress', 'step': step})\n"
        f"    os.kill(os.getpid(), {signal.SIGKILL.value})"
    )
    ended = subprocess.run([sys.executable, "-c", words, str(file)])
    assert ended.returncode == -signal.SIGKILL
    assert [one["step"] for one in events(file)] == [0, 1, 2, 3, 4]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_device_is_told_in_a_sentence() -> None:
    logger = JsonLines(Path("/dev/full"))
    with logger, pytest.raises(SteradError) as caught:
        logger.emit({"event": "start", "step": 0})
    told = str(caught.value)
    assert "cannot write '/dev/full': No space left on device" in told
    assert "--out" in told
    assert "continues from its last checkpoint" in told
    assert logger.file.closed


def test_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(SteradError, match=r"no/events.jsonl': No such file"),
        JsonLines(tmp_path / "no" / "events.jsonl"),
    ):
        pass
