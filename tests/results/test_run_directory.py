import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory

HOLD = """
import sys
from pathlib import Path
from sterad.results.run_directory import RunDirectory
with RunDirectory(Path(sys.argv[1]), "run").locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(out: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that holds the run until its input is closed."""
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def place(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path, "run")


def test_nothing_is_touched_before_it_is_locked(tmp_path: Path, place: RunDirectory) -> None:
    assert place.read_record() is None
    assert place.read_config() is None
    place.trim_events(0)
    assert list(tmp_path.iterdir()) == []


def test_a_run_held_by_another_process_is_told_with_its_number(
    tmp_path: Path, place: RunDirectory
) -> None:
    with holder(tmp_path) as process:
        with pytest.raises(SteradError) as caught, place.locked():
            pass
        told = str(caught.value)
        assert f"the run {str(place.path)!r} is being written by process {process.pid}:" in told
        assert "wait for it to finish, or choose another place with --out" in told
        assert process.poll() is None
        with RunDirectory(tmp_path, "another").locked():
            pass
        process.communicate("")
    with place.locked():
        pass


def test_sigkill_releases_it_and_the_next_cleans_up(tmp_path: Path, place: RunDirectory) -> None:
    with holder(tmp_path) as process:
        leftover = place.path / f".checkpoint.pt.{process.pid}.tmp"
        leftover.write_bytes(b"half")
        process.kill()
        process.wait()
    with place.locked():
        assert not leftover.exists()
        assert (place.path / "lock").read_text() == str(os.getpid())


def test_a_second_lock_in_one_process_is_refused_too(place: RunDirectory) -> None:
    with place.locked(), pytest.raises(SteradError, match=f"by process {os.getpid()}:"):
        place.locked().__enter__()
    with place.locked():
        pass


def test_leftovers_stay_while_another_holds_the_run(tmp_path: Path, place: RunDirectory) -> None:
    with holder(tmp_path):
        writing = place.path / ".checkpoint.pt.1.tmp"
        writing.write_bytes(b"half")
        with pytest.raises(SteradError), place.locked():
            pass
        assert writing.exists()


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = RunDirectory(tmp_path / "file", "run")
    with pytest.raises(SteradError, match=r"cannot write to .*: Not a directory\. .*--out"):
        place.locked().__enter__()


def test_no_room_even_for_the_lock(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    command = [sys.executable, "-c", limit + HOLD, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("sterad.errors.SteradError: cannot write to ")
    assert "File too large. Make room there, or choose a place" in last


def test_config_comes_back(place: RunDirectory) -> None:
    with place.locked():
        place.write_config({"seed": 3}, {"threads": 2})
    assert place.read_config() == {"config": {"seed": 3}, "execution": {"threads": 2}}


@pytest.mark.parametrize("content", [b"", b'{"config": {', b"\xff\xfe", b"[1]", b'{"config": {}}'])
def test_a_damaged_config_is_named(place: RunDirectory, content: bytes) -> None:
    with place.locked():
        place.config.write_bytes(content)
    with pytest.raises(SteradError, match=r"config.json' is damaged .*: delete the directory"):
        place.read_config()


def test_the_record_completes_the_run(
    place: RunDirectory, small_record: Callable[..., RunRecord]
) -> None:
    record = small_record({"method": {"name": "agd-fd"}})
    with place.locked():
        place.write_record(record)
        assert sorted(one.name for one in place.path.iterdir()) == ["lock", "record.json"]
    assert place.read_record() == record


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'{"schema": 1'])
def test_a_damaged_record_is_named(place: RunDirectory, content: bytes) -> None:
    with place.locked():
        place.record.write_bytes(content)
    with pytest.raises(SteradError, match=r"run/record.json is damaged .*: delete it"):
        place.read_record()


def test_a_record_that_contradicts_itself_or_cannot_be_read_is_a_sentence(
    place: RunDirectory, small_record: Callable[..., RunRecord]
) -> None:
    with place.locked():
        place.record.write_text(small_record({}).to_json().replace(": 0.5", ': "0.5"'))
    with pytest.raises(SteradError, match=r"run/record.json is damaged .*accuracy is '0.5'"):
        place.read_record()
    place.record.unlink()
    place.record.mkdir()
    with pytest.raises(SteradError, match=r"run/record.json cannot be read \(Is a directory\)"):
        place.read_record()


def test_events_after_the_checkpoint_are_forgotten(place: RunDirectory) -> None:
    events = [{"event": "progress", "step": step, "loss": 0.1 * step} for step in range(6)]
    lines = [json.dumps(event) for event in events]
    with place.locked():
        place.events.write_text("\n".join(lines) + "\n")
        place.trim_events(3)
    assert place.events.read_text().splitlines() == lines[:4]


@pytest.mark.parametrize("cut", [1, 10, 25, 40])
def test_a_last_line_cut_short_is_forgotten(place: RunDirectory, cut: int) -> None:
    whole = '{"event": "progress", "step": 1, "loss": 0.5}'
    with place.locked():
        place.events.write_text(f"{whole}\n{whole[:cut]}")
        place.trim_events(100)
    assert place.events.read_text() == whole + "\n"


def test_lines_that_are_no_events_are_forgotten(place: RunDirectory) -> None:
    with place.locked():
        place.events.write_text('3\n[]\nnull\n{"step": "x"}\n{}\n{"step": 0}\n')
        place.trim_events(100)
    assert place.events.read_text() == '{"step": 0}\n'
