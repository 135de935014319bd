"""Tables of pages come from the committed records alone, and these are compact."""

import json
import shutil
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.results.record import RunRecord
from sterad.results.run_directory import read_records
from sterad_reproduction.compact import LEFT_OUT, compact, compact_folder
from sterad_reproduction.result_tables import study_table, update_tables
from tests.reproduction.conftest import build

REPRODUCTION = Path(__file__).parents[2] / "reproduction"
RECORDS = REPRODUCTION / "records"
ER = {"method": "er", "dataset": "cifar100", "stream": "clear", "memory": 5000}


def test_the_tables_of_the_page_are_those_of_the_committed_records(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    shutil.copy(REPRODUCTION / "README.md", page)
    assert update_tables(page, RECORDS) >= 9
    assert page.read_text() == (REPRODUCTION / "README.md").read_text(), (
        "run `sterad verify reproduction/records --tables reproduction/README.md`"
    )


def test_committed_records_are_compact() -> None:
    files = list(RECORDS.rglob("record.json"))
    assert sum(file.stat().st_size for file in files) < 2_000_000
    for file in files:
        values = json.loads(file.read_text())
        assert values["provenance"]["left_out"] == list(LEFT_OUT), file


def test_a_compact_record_keeps_every_result() -> None:
    record = build(ER, 35.0)
    small = compact(record)
    names = ("id", "config", "accuracy_matrix", "final_average_accuracy", "seconds", "execution")
    assert [getattr(small, name) for name in names] == [getattr(record, name) for name in names]
    assert small.moments[0].cells == record.moments[0].cells
    assert (small.moments[0].memory, small.stream.proportions) == ((), ())
    assert small.stream.class_names == ()
    assert compact(small) == small
    assert RunRecord.from_json(small.to_json()) == small


def test_a_damaged_record_is_not_made_compact(tmp_path: Path) -> None:
    file = tmp_path / "run" / "record.json"
    file.parent.mkdir()
    text = build(ER, 35.0).to_json().replace("0.35", "0.36", 1)
    file.write_text(text)
    with pytest.raises(SteradError, match="does not match its SHA-256"):
        compact_folder(tmp_path)
    assert file.read_text() == text


def test_a_table_by_hand(tmp_path: Path) -> None:
    records = [
        build(ER | {"memory": 5000}, accuracy, seed) for seed, accuracy in enumerate((35, 37))
    ]
    records.append(build(ER | {"method": "scr"}, 40.0))
    lines = study_table(records).splitlines()
    assert lines[0] == "| method | cifar100, clear | precision | images per batch | hours per run |"
    assert lines[2:] == [
        "| scr | 40.00 (n=1) | float32 | 0 | 0.00028 |",
        "| er | 36.00 ± 1.41 (n=2) | float32 | 0 | 0.00028 |",
    ]


def test_a_table_without_records_raises(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- table: none -->\n<!-- end of table -->\n")
    with pytest.raises(SteradError, match="is no folder of records: add the records"):
        update_tables(page, tmp_path)


def test_all_committed_records_can_be_read() -> None:
    records, errors = read_records(RECORDS)
    assert not errors
    assert len(records) > 200
