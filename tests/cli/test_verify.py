import subprocess
import sys
from pathlib import Path

import pytest

from sterad.cli import main


def test_an_empty_folder_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "reproduction.md"
    assert main(["verify", str(tmp_path), "--markdown", str(page)]) == 0
    told = capsys.readouterr().out
    assert "numbers: 0 hold, 0 do not hold, 234 not run" in told
    assert f"sterad study studies/paper-clear.toml --out {tmp_path}" in told
    assert page.read_text().count("sterad train") == 234


def test_a_damaged_record_is_named_skipped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "record.json").write_text("{")
    assert main(["verify", str(tmp_path)]) == 0
    named, counted = capsys.readouterr().err.splitlines()
    assert "broken/record.json is damaged" in named
    assert counted.startswith("left out: 1 of 1 records")


def test_a_page_by_hand_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "mine.md"
    page.write_text("# Mine\n")
    assert main(["verify", str(tmp_path), "--markdown", str(page)]) == 2
    assert "has no place for the verdicts and is left as it is" in capsys.readouterr().err
    assert page.read_text() == "# Mine\n"


def test_no_runs_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / "none")]) == 2
    assert "is not a folder of runs" in capsys.readouterr().err


def test_torch_is_not_imported() -> None:
    code = "import sys, sterad.cli.verify; sys.exit(bool({'torch', 'matplotlib'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
