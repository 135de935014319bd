import fcntl
import time
from pathlib import Path

import optuna
import pytest
from optuna.storages.journal import JournalStorage

from sterad.errors import SteradError
from sterad.experiments.search import journal
from sterad.experiments.search.journal import JournalFile


def study(file: Path) -> optuna.Study:
    storage = JournalStorage(JournalFile(file))
    return optuna.create_study(storage=storage, study_name="one", load_if_exists=True)


def test_what_is_told_is_there_again(tmp_path: Path) -> None:
    first = study(tmp_path / "deep" / "search.journal")
    first.tell(first.ask(), 0.5)
    assert study(tmp_path / "deep" / "search.journal").best_value == 0.5


def test_a_lock_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "PATIENCE", 0.3)
    kept, began = study(tmp_path / "j"), time.monotonic()
    with open(tmp_path / "j.lock", "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SteradError, match=r"j' has been locked by another process.*kept"):
            kept.ask()
    assert 0.3 < time.monotonic() - began < 5
    assert kept.ask().number == 0


def test_an_unfinished_line_is_cut_off(tmp_path: Path) -> None:
    before = study(tmp_path / "j")
    before.tell(before.ask(), 0.5)
    with open(tmp_path / "j", "ab") as file:
        file.write(b'{"op_code": 4, "worker')
    after = study(tmp_path / "j")
    after.tell(after.ask(), 0.7)
    assert [trial.value for trial in study(tmp_path / "j").trials] == [0.5, 0.7]


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("[er]\nlr = 1\n")
    with pytest.raises(SteradError, match="is no journal of a search, or is damaged"):
        study(tmp_path / "j")
    assert (tmp_path / "j").read_text() == "[er]\nlr = 1\n"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        SteradError, match=r"cannot write the storage .*: (Not a directory|File exists)"
    ):
        study(tmp_path / "file" / "j")
    with pytest.raises(SteradError, match="Is a directory"):
        study(tmp_path)
