import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from sterad.cli import COMMAND_GROUP, main
from sterad.results.record import RunRecord
from sterad_reproduction import verify

ROOT = Path(__file__).parents[2]


def test_an_empty_folder_has_a_command_for_every_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "reproduction.md"
    assert main(["verify", str(tmp_path), "--markdown", str(page)]) == 0
    output = capsys.readouterr().out
    assert "numbers: 0 hold, 0 do not hold, 234 not run" in output
    assert f"sterad study studies/paper-clear.toml --out {tmp_path}" in output
    assert page.read_text().count("sterad train") == 234


def test_a_damaged_record_is_reported_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "record.json").write_text("{")
    assert main(["verify", str(tmp_path)]) == 0
    damaged, count = capsys.readouterr().err.splitlines()
    assert "broken/record.json is damaged" in damaged
    assert count.startswith("left out: 1 of 1 records")


def test_a_page_without_marks_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n")
    assert main(["verify", str(tmp_path), "--markdown", str(page)]) == 2
    assert "has no marks for the verdicts and is not changed" in capsys.readouterr().err
    assert page.read_text() == "# Title\n"


def test_a_missing_folder_raises_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(tmp_path / "none")]) == 2
    assert "is not a folder of runs" in capsys.readouterr().err


def test_torch_is_not_imported() -> None:
    code = (
        "import sys, sterad_reproduction.verify;"
        "sys.exit(bool({'torch', 'matplotlib'} & {*sys.modules}))"
    )
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": path}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


@pytest.mark.parametrize("arguments", [["verify"], ["report", "--paper"]])
def test_without_the_package_an_error_says_how_to_install_it(
    arguments: list[str],
    tmp_path: Path,
    make: Callable[..., RunRecord],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = {"method": "er", "dataset": "cifar10", "stream": "clear", "memory": 500}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "record.json").write_text(make(settings, 50.0).to_json())
    monkeypatch.setattr(metadata, "entry_points", lambda **_: ())
    for module in ("report", "verify"):
        monkeypatch.setitem(sys.modules, f"sterad_reproduction.{module}", None)
    assert main([arguments[0], str(tmp_path), *arguments[1:]]) == 2
    message = capsys.readouterr().err
    assert "sterad-reproduction, which is not installed: `pip install -e reproduction`" in message
    assert "`pip install 'sterad[reproduction]'`" in message
    assert not (tmp_path / "report.html").exists()


def test_the_package_declares_the_command() -> None:
    project = tomllib.loads((ROOT / "reproduction" / "pyproject.toml").read_text())["project"]
    entry_point = metadata.EntryPoint(
        "verify", project["entry-points"][COMMAND_GROUP]["verify"], ""
    )
    assert entry_point.load() is verify.main


def test_commands_are_found_through_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_command.py").write_text("def main(argv):\n    return 10 + len(argv)\n")
    (tmp_path / "my_command-1.dist-info").mkdir()
    (tmp_path / "my_command-1.dist-info" / "METADATA").write_text("Name: my-command\nVersion: 1\n")
    (tmp_path / "my_command-1.dist-info" / "entry_points.txt").write_text(
        f"[{COMMAND_GROUP}]\nhello = my_command:main\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["hello", "a", "b"]) == 12
