"""Studies are found by name in the package, and by path anywhere."""

from pathlib import Path

import pytest

from sterad.cli import main
from sterad.errors import SteradError
from sterad.experiments.study_files import find_study

SHIPPED = Path(__file__).parents[2] / "studies"


@pytest.fixture(autouse=True)
def _empty_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_study_of_the_checkout_has_a_name() -> None:
    for file in SHIPPED.glob("*.toml"):
        assert find_study(file.stem).samefile(file)


def test_a_path_is_taken_as_it_is() -> None:
    Path("demo").write_text("[fixed]")  # a file of the name of a study is that file
    assert find_study("demo") == Path("demo")
    assert find_study("missing.toml") == Path("missing.toml")


def test_a_study_of_the_working_folder_replaces_the_shipped_one_of_its_name() -> None:
    Path("studies").mkdir()
    Path("studies/demo.toml").write_text("[fixed]")
    assert find_study("demo") == Path("studies/demo.toml")


def test_a_folder_of_the_name_of_a_study_does_not_hide_it() -> None:
    Path("digits").mkdir()  # for example the runs of --out digits
    assert find_study("digits").samefile(SHIPPED / "digits.toml")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SteradError, match=r"did you mean 'paper-clear'\? known are .*demo, digits"):
        find_study("paper-cleer")


def test_the_command_takes_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "paper-clear", "--dry-run"]) == 0
    assert "880 of 880 runs to do" in capsys.readouterr().out
