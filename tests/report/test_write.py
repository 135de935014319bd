import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.report.tables import MetricTable
from sterad.report.write import to_file_name, write_figures, write_report
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
ENDINGS = (".html", ".md", ".tex", "-runs.csv", "-cells.csv")


@pytest.fixture
def runs(tmp_path: Path, make_record: Build) -> Path:
    """Return a folder with two finished runs."""
    for method in ("agd-fd", "finetune"):
        record = make_record(method)
        (tmp_path / record.id).mkdir()
        (tmp_path / record.id / "record.json").write_text(record.to_json())
    return tmp_path


def test_page_and_tables_are_written(runs: Path) -> None:
    page = write_report(runs)
    assert page == runs / "report.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    tables = (runs / "report.md").read_text(encoding="utf-8")
    assert tables.count("| agd-fd |") == 4, "three metrics and the cost"
    assert "In all runs: digits, clear, tasks 5" in tables
    texts = {f"report{ending}" for ending in ENDINGS}
    assert {path.name for path in runs.iterdir() if path.is_file()} == texts
    assert not (runs / "report-figures").exists()


@pytest.mark.slow
def test_equal_records_give_equal_bytes(runs: Path) -> None:
    first, again = (
        [write_report(runs).with_name(f"report{ending}").read_bytes() for ending in ENDINGS]
        for _ in range(2)
    )
    assert first == again


def test_a_damaged_record_is_reported_and_counted(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / "cut").mkdir()
    (runs / "cut" / "record.json").write_text('{"schema": 1, ')
    page = write_report(runs)
    damaged, count = capsys.readouterr().err.splitlines()
    assert damaged.startswith("cut/record.json is damaged")
    assert count == "left out: 1 of 3 records; their files are not changed"
    assert "1 record was left out" in page.read_text(encoding="utf-8")
    assert "Left out: 1" in (runs / "report.md").read_text(encoding="utf-8")
    assert (runs / "cut" / "record.json").exists()


def test_a_record_of_a_newer_version_is_reported_and_kept(
    runs: Path, make_record: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = json.loads(make_record("er").to_json()) | {"schema": 2}
    (runs / "newer").mkdir()
    (runs / "newer" / "record.json").write_text(json.dumps(newer))
    page = write_report(runs)
    warning = "has schema 2 and this sterad reads 1: use the version that wrote it"
    assert warning in capsys.readouterr().err
    assert "newer/record.json has schema 2" in page.read_text(encoding="utf-8")
    assert json.loads((runs / "newer" / "record.json").read_text()) == newer


def test_tables_are_passed_to_show_tables(runs: Path) -> None:
    tables: list[MetricTable] = []
    write_report(runs, show_tables=tables.extend)
    assert [table.metric for table in tables] == [
        "final_average_accuracy",
        "average_forgetting",
        "anytime_accuracy",
    ]


@pytest.mark.slow
def test_figures_are_written_as_pdf_and_png(runs: Path) -> None:
    page = write_report(runs, figures=True)
    folder = runs / "report-figures"
    count = page.read_text(encoding="utf-8").count("<figure")
    pdfs, pngs = ({path.stem for path in folder.glob(f"*.{end}")} for end in ("pdf", "png"))
    assert pdfs == pngs
    assert len(pdfs) == count
    listed = list(csv.DictReader((folder / "figures.csv").read_text().splitlines()))
    assert {row["file"] for row in listed} == pdfs
    assert (folder / "time-1-digits-clear.pdf").read_bytes().startswith(b"%PDF")
    before = (folder / "sphere-1-agd-fd-digits-clear-seed-0.png").read_bytes()
    write_report(runs, figures=True)
    assert (folder / "sphere-1-agd-fd-digits-clear-seed-0.png").read_bytes() == before


def test_an_empty_folder_raises_an_error_with_a_command(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="sterad train agd-fd --out"):
        write_report(tmp_path)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "record.json").write_text("")
    with pytest.raises(SteradError, match="no finished run that can be read"):
        write_report(tmp_path)


def test_a_page_that_cannot_be_written_raises_an_error(runs: Path) -> None:
    (runs / "report.html").mkdir()
    with pytest.raises(SteradError, match="cannot write"):
        write_report(runs)


def test_torch_is_not_imported(runs: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import sterad.report.tables, sterad.report.write;"
        "assert 'matplotlib' not in sys.modules, 'matplotlib at import';"
        "sterad.report.write.write_report(Path(sys.argv[1]));"
        "assert 'torch' not in sys.modules, 'torch';"
        "assert 'matplotlib.pyplot' not in sys.modules, 'pyplot'"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, str(runs)], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/b: ../c", "a-b-c"), ("漢字", "figure"), ("x" * 90, "x" * 60), ("Er, seed 0", "er-seed-0")],
)
def test_file_names_have_only_letters_digits_and_hyphens(name: str, expected: str) -> None:
    assert to_file_name(name) == expected


def test_a_figure_folder_that_cannot_be_created_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(SteradError, match="cannot create the folder"):
        write_figures([], tmp_path / "taken")


@pytest.mark.slow
def test_two_thousand_runs_take_seconds(tmp_path: Path, make_record: Build) -> None:
    for place, memory in enumerate(range(100)):
        for seed in range(20):
            record = make_record("er" if place % 2 else "agd-fd", "clear", seed, memory // 2)
            folder = tmp_path / record.id
            folder.mkdir()
            (folder / "record.json").write_text(record.to_json())
    start = time.process_time()
    page = write_report(tmp_path)
    # It takes 6 s: see benchmarks/report.py. The margin is for slow machines.
    assert time.process_time() - start < 30
    assert "2000 runs of" in page.read_text(encoding="utf-8")
