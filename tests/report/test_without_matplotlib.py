"""A report without matplotlib has all tables and no figures, and says so."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.cli import main
from sterad.results.record import RunRecord


@pytest.fixture
def runs(
    tmp_path: Path, make_record: Callable[..., RunRecord], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return a folder with a finished run, in a process that cannot import matplotlib."""
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    record = make_record("agd-fd")
    (tmp_path / record.id).mkdir()
    (tmp_path / record.id / "record.json").write_text(record.to_json())
    return tmp_path


def test_tables_and_the_page_are_written(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs)]) == 0
    page = (runs / "report.html").read_text()
    assert "Final average accuracy" in page
    assert "<svg" not in page
    assert (runs / "report.md").read_text().count("| agd-fd |") == 4
    assert "pip install 'sterad[report]'" in capsys.readouterr().err


def test_figures_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs), "--figures"]) == 2
    assert "pip install 'sterad[report]'" in capsys.readouterr().err
    assert not (runs / "report.html").exists()
