import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sterad.errors import SteradError
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.results.stored_run import (
    check_field,
    find_run_folders,
    matches,
    read_run,
    read_runs,
    resolve_run,
)

Build = Callable[..., RunRecord]
CONFIG = {"method": {"name": "er", "lr": 0.5}, "dataset": {"name": "digits"}, "seed": 3}
IDS = ("er-digits-clear-s3-0123456789", "er-digits-clear-s4-abcdef0123", "scr-digits-iid-s0-99999")


@pytest.fixture
def out(tmp_path: Path, small_record: Build) -> Path:
    """Return a folder with three finished runs."""
    for run_id in IDS:
        folder = RunDirectory(tmp_path, run_id)
        with folder.locked():
            folder.write_config(CONFIG, {})
            folder.write_record(small_record(CONFIG, id=run_id))
    return tmp_path


def add_unfinished(out: Path, lines: list[str]) -> Path:
    folder = RunDirectory(out, "er-digits-clear-s9-0000000000")
    with folder.locked():
        folder.write_config(CONFIG, {})
        folder.events.write_text("\n".join(lines))
    return folder.path


def test_a_finished_run(out: Path) -> None:
    run = read_run(out / IDS[0])
    assert (run.id, run.state, run.problem) == (IDS[0], "finished", "")
    assert run.curve == ((10, 0.5), (20, 0.5))
    assert (run.step, run.steps, run.seconds, run.accuracy) == (2, 2, 1.0, 0.5)
    assert run.value("method.lr") == "0.5"
    assert run.value("stream.name") == ""
    assert run.changed == (out / IDS[0] / "record.json").stat().st_mtime


def test_a_record_file_is_a_run(out: Path) -> None:
    file = out / IDS[0] / "record.json"
    assert read_run(file).id == IDS[0]
    (out / "copy.txt").write_bytes(b"{}")
    with pytest.raises(SteradError, match="is damaged"):
        read_run(out / "copy.txt")


def test_an_unfinished_run_has_the_progress_of_its_events(out: Path) -> None:
    events = [
        {"event": "start", "step": 0, "steps": 40, "seconds": 0.0},
        {
            "event": "evaluation",
            "step": 10,
            "steps": 40,
            "samples": 100,
            "accuracy": 0.25,
            "total_samples": 400,
        },
        {"event": "evaluation", "step": 12, "samples": "many", "accuracy": 0.25},
        {"event": "progress", "step": 20, "steps": 40, "seconds": 7.5},
    ]
    path = add_unfinished(out, [*map(json.dumps, events), '{"event": "progr'])
    run = read_run(path)
    assert (run.state, run.step, run.steps, run.seconds) == ("unfinished", 20, 40, 7.5)
    assert (run.curve, run.samples) == (((100, 0.25),), 400)
    assert run.accuracy == 0.25
    assert run.id == path.name


@given(st.binary(max_size=300))
def test_events_of_any_bytes_are_read(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    out = tmp_path_factory.mktemp("runs")
    path = add_unfinished(out, [])
    lines = (data, b'{"step": 1, "accuracy": ' + data + b', "samples": 2}')
    (path / "events.jsonl").write_bytes(b"\n".join(lines))
    assert read_run(path).state == "unfinished"


def test_events_with_numbers_that_no_run_writes_are_left_out(out: Path) -> None:
    huge = 10**400
    events = [
        {"event": "evaluation", "step": 5, "samples": 3, "accuracy": huge, "seconds": huge},
        {"event": "evaluation", "step": 6, "samples": 4, "accuracy": float("nan"), "steps": 9},
        {"event": "progress", "step": huge, "steps": huge, "total_samples": huge},
    ]
    run = read_run(add_unfinished(out, [*map(json.dumps, events)]))
    assert (run.curve, run.step, run.samples, run.seconds) == ((), 0, 0, 0.0)


@pytest.mark.parametrize("file", ["record.json", "config.json", "events.jsonl"])
def test_a_fifo_in_a_run_never_blocks(out: Path, file: str) -> None:
    path = add_unfinished(out, [])
    (path / file).unlink(missing_ok=True)
    os.mkfifo(path / file)
    run = read_run(path)  # read_run leaves out events that are not in a file
    assert run.state == ("unfinished" if file == "events.jsonl" else "damaged")
    assert run.state == "unfinished" or "it is a FIFO, a socket or a device" in run.problem


def test_a_record_of_any_size_needs_little_memory(out: Path) -> None:
    file = out / IDS[0] / "record.json"
    os.truncate(file, 1 << 40)
    assert "it has 1,099,511,627,776 bytes, more than" in read_run(file.parent).problem


def test_a_run_that_a_process_writes_is_running(out: Path) -> None:
    path = add_unfinished(out, [])
    folder = RunDirectory(out, path.name)
    with folder.locked():
        assert read_run(path).state == "running"
        assert folder.find_writer() == str(os.getpid())
    assert read_run(path).state == "unfinished"
    assert folder.find_writer() is None


def test_reading_creates_no_lock(out: Path) -> None:
    path = add_unfinished(out, [])
    (path / "lock").unlink()
    assert read_run(path).state == "unfinished"
    assert not (path / "lock").exists()


@pytest.mark.parametrize("file", ["record.json", "config.json"])
def test_damage_is_a_state_with_a_sentence(out: Path, file: str) -> None:
    (out / IDS[0] / "record.json").unlink()
    (out / IDS[0] / file).write_text("{")
    run = read_run(out / IDS[0])
    assert (run.state, run.accuracy, run.config) == ("damaged", None, {})
    assert f"{IDS[0]}/{file}" in run.problem


def test_all_runs_are_found_in_studies_and_links_are_not_followed(
    out: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "run").mkdir()
    (outside / "run" / "config.json").write_text("{}")
    (out / "link").symlink_to(outside / "run")
    (out / "study").symlink_to(outside)
    (out / "notes").mkdir()
    (out / "grid").mkdir()
    (out / IDS[2]).rename(out / "grid" / IDS[2])
    assert [path.name for path in find_run_folders(out)] == [*IDS[:2], IDS[2]]
    assert [run.id for run in read_runs(out)] == list(IDS)
    with pytest.raises(SteradError, match="is not a folder of runs"):
        read_runs(out / "absent")


@pytest.mark.parametrize("name", [IDS[0], "er-digits-clear-s3", "01234", "scr"])
def test_a_run_by_id_beginning_or_hash(out: Path, name: str) -> None:
    assert resolve_run(name, out).id == (IDS[2] if name == "scr" else IDS[0])


def test_a_run_by_path(out: Path) -> None:
    assert resolve_run(str(out / IDS[1]), Path("absent")).id == IDS[1]
    assert resolve_run(str(out / IDS[1] / "record.json"), Path("absent")).id == IDS[1]


def test_names_that_are_no_run(out: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = tmp_path_factory.mktemp("empty")
    for name, folder, sentence in (
        ("er", out, f"'er' is the beginning of 2 runs: give more of {IDS[0]}, {IDS[1]}"),
        ("er-digits-clera-s3-0123456789", out, f"did you mean '{IDS[0]}'?"),
        ("x", empty, f"there is no run 'x': '{empty}' has no runs; --out names another folder"),
        (str(empty), out, f"'{empty}' is a folder, not a run"),
        ("", out, "'' is a folder, not a run"),
    ):
        with pytest.raises(SteradError) as caught:
            resolve_run(name, folder)
        assert sentence in str(caught.value)


def test_equal_ids_in_two_studies_need_the_path(out: Path) -> None:
    for study in ("a", "b"):
        (out / study / IDS[0]).mkdir(parents=True)
        (out / study / IDS[0] / "config.json").write_text("{}")
    with pytest.raises(SteradError, match="is in 3 folders: give the path"):
        resolve_run(IDS[0], out)


def test_conditions_match_paths_names_and_numbers(out: Path) -> None:
    run = read_run(out / IDS[0])
    for field, value in (("lr", "0.5"), ("method.lr", "5e-1"), ("seed", "3"), ("name", "digits")):
        assert matches(run, field, value)
    for field, value in (("lr", "half"), ("r", "0.5"), ("seed", "4"), ("views", "2")):
        assert not matches(run, field, value)
    check_field("lr", [run])
    with pytest.raises(SteradError, match="no run has a field 'sede': did you mean 'seed'"):
        check_field("sede", [run])
