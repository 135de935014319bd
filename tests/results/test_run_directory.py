import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sterad.errors import SteradError
from sterad.files import content_hash
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory, read_records

Build = Callable[..., RunRecord]
HOLD_LOCK = """
import sys
from pathlib import Path
from sterad.results.run_directory import RunDirectory
with RunDirectory(Path(sys.argv[1]), "run").locked():
    print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def hold_lock(out: Path) -> Iterator[subprocess.Popen[str]]:
    """Run another process that locks the run until its stdin is closed."""
    command = [sys.executable, "-c", HOLD_LOCK, str(out)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path, "run")


def test_no_file_is_created_before_locking(tmp_path: Path, directory: RunDirectory) -> None:
    assert directory.read_record() is None
    assert directory.read_config() is None
    directory.trim_events(0)
    assert list(tmp_path.iterdir()) == []


def test_a_locked_run_raises_an_error_with_the_process_id(
    tmp_path: Path, directory: RunDirectory
) -> None:
    with hold_lock(tmp_path) as process:
        with pytest.raises(SteradError) as caught, directory.locked():
            pass
        message = str(caught.value)
        assert (
            f"the run {str(directory.path)!r} is being written by process {process.pid}:" in message
        )
        assert "wait for it to finish, or choose another folder with --out" in message
        assert process.poll() is None
        with RunDirectory(tmp_path, "another").locked():
            pass
        process.communicate("")
    with directory.locked():
        pass


def test_sigkill_releases_the_lock_and_leftovers_are_removed(
    tmp_path: Path, directory: RunDirectory
) -> None:
    with hold_lock(tmp_path) as process:
        leftover = directory.path / f".checkpoint.pt.{process.pid}.tmp"
        leftover.write_bytes(b"half")
        process.kill()
        process.wait()
    with directory.locked():
        assert not leftover.exists()
        assert (directory.path / "lock").read_text() == str(os.getpid())


def test_a_second_lock_in_one_process_raises_an_error(directory: RunDirectory) -> None:
    with directory.locked(), pytest.raises(SteradError, match=f"by process {os.getpid()}:"):
        directory.locked().__enter__()
    with directory.locked():
        pass


def test_leftovers_of_a_locked_run_are_kept(tmp_path: Path, directory: RunDirectory) -> None:
    with hold_lock(tmp_path):
        leftover = directory.path / ".checkpoint.pt.1.tmp"
        leftover.write_bytes(b"half")
        with pytest.raises(SteradError), directory.locked():
            pass
        assert leftover.exists()


def test_an_unwritable_folder_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    directory = RunDirectory(tmp_path / "file", "run")
    with pytest.raises(SteradError, match=r"cannot write to .*: Not a directory\. .*--out"):
        directory.locked().__enter__()


def test_a_full_disk_raises_an_error(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    command = [sys.executable, "-c", limit + HOLD_LOCK, str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True)
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("sterad.errors.SteradError: cannot write to ")
    assert "File too large. Free space there, or choose a writable folder" in last


def test_config_round_trip(directory: RunDirectory) -> None:
    with directory.locked():
        directory.write_config({"seed": 3}, {"threads": 2})
    assert directory.read_config() == {"config": {"seed": 3}, "execution": {"threads": 2}}


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b'{"config": {', b"\xff\xfe", b"[1]", b'{"config": {}}', b"[" * 100_000),
        *(b'{"config": {}, "execution": 3}', b'{"config": [], "execution": {}}'),
        *(b'{"config": {"seed": Infinity}, "execution": {}}', b"1" * 5_000),
    ],
)
def test_a_damaged_config_is_named(directory: RunDirectory, content: bytes) -> None:
    with directory.locked():
        directory.config.write_bytes(content)
    with pytest.raises(SteradError, match=r"config.json' is damaged .*: undo .* delete"):
        directory.read_config()


def test_the_record_completes_the_run(directory: RunDirectory, small_record: Build) -> None:
    record = small_record({"method": {"name": "agd-fd"}})
    with directory.locked():
        directory.write_record(record)
        assert sorted(file.name for file in directory.path.iterdir()) == ["lock", "record.json"]
    assert directory.read_record() == record


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'{"schema": 1'])
def test_a_damaged_record_is_named(directory: RunDirectory, content: bytes) -> None:
    with directory.locked():
        directory.record.write_bytes(content)
    with pytest.raises(SteradError, match=r"run/record.json is damaged .*: delete it"):
        directory.read_record()


def test_an_inconsistent_or_unreadable_record_raises_an_error(
    directory: RunDirectory, small_record: Build
) -> None:
    with directory.locked():
        raw = dataclasses.asdict(small_record({})) | {"anytime_accuracy": "0.5"}
        directory.record.write_text(json.dumps(raw | {"sha256": content_hash(raw)}))
    with pytest.raises(SteradError, match=r"run/record.json is damaged .*wrong type"):
        directory.read_record()
    directory.record.unlink()
    directory.record.mkdir()
    with pytest.raises(SteradError, match=r"run/record.json cannot be read \(Is a directory\)"):
        directory.read_record()


def test_events_after_the_checkpoint_are_deleted(directory: RunDirectory) -> None:
    events = [{"event": "progress", "step": step, "loss": 0.1 * step} for step in range(6)]
    lines = [json.dumps(event) for event in events]
    with directory.locked():
        directory.events.write_text("\n".join(lines) + "\n")
        directory.trim_events(3)
    assert directory.events.read_text().splitlines() == lines[:4]


@pytest.mark.parametrize("cut", [1, 10, 25, 40])
def test_a_truncated_last_line_is_deleted(directory: RunDirectory, cut: int) -> None:
    whole = '{"event": "progress", "step": 1, "loss": 0.5}'
    with directory.locked():
        directory.events.write_text(f"{whole}\n{whole[:cut]}")
        directory.trim_events(100)
    assert directory.events.read_text() == whole + "\n"


def test_a_run_that_starts_again_or_ends_again_writes_these_events_once(
    directory: RunDirectory,
) -> None:
    start, end = '{"event": "start", "step": 0}\n', '{"event": "end", "step": 2}\n'
    with directory.locked():
        directory.events.write_text(start)
        directory.trim_events(0)
        assert directory.events.read_text() == ""
        directory.events.write_bytes((start + end).encode() + b"\xff\x00")
        directory.trim_events(2)
        assert directory.events.read_text() == start


def test_lines_that_are_not_events_are_deleted(directory: RunDirectory) -> None:
    with directory.locked():
        good = '{"event": "progress", "step": 1}\n'
        foreign = b'3\n[]\nnull\n{"step": "x"}\n{}\n\xff\xfe\n{"step": Infinity}\n' + b"[" * 9999
        directory.events.write_bytes(good.encode() + foreign + b"\n" + good.encode())
        directory.trim_events(100)
    assert directory.events.read_text() == 2 * good


def test_events_end_with_the_checkpoint_that_the_run_continues_from(
    directory: RunDirectory,
) -> None:
    kinds = [("start", 0), ("progress", 2), ("checkpoint", 2), ("evaluation", 2), ("end", 2)]
    lines = [json.dumps({"event": kind, "step": step}) for kind, step in kinds]
    with directory.locked():
        directory.events.write_text("\n".join(lines) + "\n")
        directory.trim_events(2)
    assert directory.events.read_text().splitlines() == lines[:3]
    with directory.locked():
        directory.events.write_text("\n".join([lines[0], *lines[3:]]) + "\n")
        directory.trim_events(2)
    assert directory.events.read_text().splitlines() == [lines[0], lines[3]], "no second end"
    with directory.locked():
        directory.trim_events(0)
    assert directory.events.read_text() == "", "a run from the beginning has no earlier events"


@pytest.mark.parametrize(
    "line",
    [b'{"step": "\xff"}', b'{"step": Infinity}', b"[" * 100_000, b'{"step": 1%s}' % (b"0" * 5000)],
)
def test_a_damaged_event_is_deleted(directory: RunDirectory, line: bytes) -> None:
    with directory.locked():
        directory.events.write_bytes(
            b'{"step": 0}\n' + line + b'\n{"step": 1, "name": "\xc3\xa9"}\n'
        )
        directory.trim_events(100)
    assert directory.events.read_bytes() == b'{"step": 0}\n{"step": 1, "name": "\xc3\xa9"}\n'


def test_events_that_cannot_be_read_are_named(directory: RunDirectory) -> None:
    directory.events.mkdir(parents=True)
    with pytest.raises(SteradError, match=r"events.jsonl' cannot be read .*: delete it"):
        directory.trim_events(0)


@pytest.mark.parametrize("depth", [40, 900, 100_000])
def test_a_deeply_nested_record_is_left_out(
    tmp_path: Path, small_record: Build, depth: int
) -> None:
    text = small_record({"a": "b"}, "deep").to_json()
    write_record(tmp_path, "deep", text.replace('"b"', '{"a": ' * depth + "1" + "}" * depth))
    records, (sentence,) = read_records(tmp_path)
    assert records == []
    assert "deep/record.json is damaged" in sentence
    assert len(sentence) < 500


def write_record(out: Path, folder: str, text: str) -> None:
    (out / folder).mkdir(parents=True)
    (out / folder / "record.json").write_text(text, encoding="utf-8")


def test_records_are_read_in_order_of_ids(tmp_path: Path, small_record: Build) -> None:
    expected = [small_record({"seed": seed}, name) for seed, name in enumerate("cab")]
    for folder, record in zip(("1", "2", "3"), expected, strict=True):
        write_record(tmp_path, folder, record.to_json())
    (tmp_path / "unfinished").mkdir()
    records, left_out = read_records(tmp_path)
    assert left_out == []
    assert records == sorted(expected, key=lambda record: record.id)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "has schema 99"),
        ({"seconds": None}, "seconds is None, which has a wrong type"),
        ({"final_average_accuracy": "high"}, "final_average_accuracy is 'high'"),
        ({"anytime_accuracy": float("nan")}, "it contains NaN, which is not a finite number"),
        ({"accuracy_matrix": [[0.5]]}, "does not have 2 columns, one per evaluation"),
        ({"moments": []}, "no moments"),
        ({"stream": [1, 2]}, "is damaged"),
        ({"sphere": {"classes": [0, 1, 7], "frames": []}}, "labels outside its 2 classes"),
        ({"surprise": 1}, "a newer sterad wrote it"),
        ({"confusion": [[1, 2]]}, "does not have 2 rows and columns, one per class"),
        ({"confusion": [[1, 2], [3, None]]}, "is damaged"),
        ({"losses": [[1, None, 2.0]]}, "is damaged"),
        ({"losses": [[1, float("inf"), 2.0]]}, "it contains Infinity, which"),
        ({"losses": [[1, 10**400, 2.0]]}, "has more than 64 bits"),
        ({"peak_memory_bytes": 10**400}, "has more than 64 bits"),
        ({"images_per_step": "many"}, "images_per_step is 'many', which has a wrong type"),
        ({"config": 3}, "config is 3, which has a wrong type"),
        ({"execution": ["cpu"]}, "which has a wrong type"),
        ({"evaluations": [1, 2]}, "which has a wrong type"),
    ],
)
def test_an_inconsistent_record_is_left_out(
    tmp_path: Path, small_record: Build, change: dict[str, Any], message: str
) -> None:
    good = small_record({"seed": 0}, "good")
    write_record(tmp_path, "good", good.to_json())
    bad = {**dataclasses.asdict(good), "id": "bad", **change}
    write_record(tmp_path, "bad", json.dumps(bad | {"sha256": content_hash(bad)}))
    records, left_out = read_records(tmp_path)
    assert [record.id for record in records] == ["good"]
    assert len(left_out) == 1
    assert left_out[0].startswith("bad/record.json")
    assert message in left_out[0]


@pytest.mark.parametrize("end", [0, 1, 100, -2])
def test_a_truncated_record_is_left_out(tmp_path: Path, small_record: Build, end: int) -> None:
    write_record(tmp_path, "cut", small_record({}, "cut").to_json()[:end])
    records, (sentence,) = read_records(tmp_path)
    assert records == []
    assert "cut/record.json is damaged" in sentence


def test_a_record_that_is_not_text_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "record.json").write_bytes(b"\xff\xfe\x00\x80")
    assert read_records(tmp_path)[0] == []
    (tmp_path / "folder" / "record.json").mkdir(parents=True)
    assert [line.split("/")[0] for line in read_records(tmp_path)[1]] == ["folder", "noise"]


def test_a_copied_run_counts_once(tmp_path: Path, small_record: Build) -> None:
    for folder in ("one", "two"):
        write_record(tmp_path, folder, small_record({}, "same").to_json())
    records, left_out = read_records(tmp_path)
    assert len(records) == 1
    assert left_out == ["two/record.json repeats the run same: delete one of the two"]


def test_runs_shared_by_studies_are_read_once(tmp_path: Path, small_record: Build) -> None:
    single, shared = (small_record({"seed": seed}, name) for seed, name in enumerate("ab"))
    write_record(tmp_path, "a", single.to_json())
    for folder in ("first/b", "second/b"):
        write_record(tmp_path, folder, shared.to_json())
    write_record(tmp_path, "second/broken", "{")
    records, left_out = read_records(tmp_path)
    assert records == [single, shared]
    assert [line.split()[0] for line in left_out] == ["second/broken/record.json"]


def test_a_missing_folder_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="sterad train agd-fd --out"):
        read_records(tmp_path / "nowhere")
