from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.results.deletion import check_deletable, delete_run
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.results.stored_run import StoredRun, read_run

Build = Callable[..., RunRecord]
ID = "er-digits-clear-s0-0123456789"


@pytest.fixture
def path(tmp_path: Path, small_record: Build) -> Path:
    """Return the directory of a finished run with every file that a run can have."""
    folder = RunDirectory(tmp_path, ID)
    with folder.locked():
        folder.write_config({"seed": 0}, {})
        folder.write_record(small_record({"seed": 0}, id=ID))
        for file in (folder.events, folder.checkpoint, folder.previous_checkpoint):
            file.write_bytes(b"12345")
    return folder.path


def refuse(run: StoredRun, sentence: str) -> None:
    """Assert that a run is not deleted, and that all of its files are still there."""
    before = {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()}
    for delete in (check_deletable, delete_run):
        with pytest.raises(SteradError) as caught:
            delete(run)
        assert sentence in str(caught.value)
    assert before == {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()}


def test_all_files_of_a_run_are_deleted(path: Path) -> None:
    (path / ".record.json.0123.tmp").write_text("left by a kill")
    (path.parent / "other").mkdir()
    size = sum(file.stat().st_size for file in path.iterdir())
    assert delete_run(read_run(path)) == size
    assert [file.name for file in path.parent.iterdir()] == ["other"]


@pytest.mark.parametrize("state", ["unfinished", "damaged"])
def test_runs_that_are_not_finished_can_be_deleted(path: Path, state: str) -> None:
    (path / "record.json").unlink()
    if state == "damaged":
        (path / "record.json").write_text("{")
    run = read_run(path)
    assert run.state == state
    delete_run(run)
    assert not path.exists()


def test_a_locked_run_is_not_deleted(path: Path) -> None:
    with RunDirectory(path.parent, path.name).locked():
        refuse(read_run(path), f"the run {ID} is being written by process ")
    delete_run(read_run(path))


@pytest.mark.parametrize("name", ["notes.txt", "figures/plot.png", ".hidden", "record.json.bak"])
def test_a_directory_with_other_files_is_not_deleted(path: Path, name: str) -> None:
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).write_text("mine")
    refuse(read_run(path), f"files that are not of a run ({Path(name).parts[0]})")


def test_links_are_not_followed(path: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (path / "events.jsonl").unlink()
    (path / "events.jsonl").symlink_to(mine)
    refuse(read_run(path), "files that are not of a run (events.jsonl)")
    link = tmp_path / "er-digits-clear-s1-0123456789"
    link.symlink_to(path)
    refuse(read_run(link), "is not a run directory")
    assert mine.read_text() == "mine"


def test_a_directory_with_another_name_is_not_deleted(path: Path) -> None:
    moved = path.rename(path.with_name("thesis"))
    refuse(read_run(moved), "does not have the name of a run")


def test_a_record_file_on_its_own_is_not_deleted(path: Path) -> None:
    refuse(read_run(path / "record.json"), "is not a run directory")
