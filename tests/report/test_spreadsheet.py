import csv
import dataclasses
from collections.abc import Callable

import pytest
from sterad.report.spreadsheet import cells_csv, runs_csv

from sterad.report.tables import metric_table
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


@pytest.fixture
def records(make_record: Build) -> list[RunRecord]:
    """Two methods and three seeds; one method has a field that the other lacks."""
    both = [(make_record("er", seed=seed), make_record(seed=seed, a=1)) for seed in range(3)]
    return [
        dataclasses.replace(record, final_average_accuracy=level + 0.01 * seed)
        for seed, pair in enumerate(both)
        for record, level in zip(pair, (0.5, 0.9), strict=True)
    ]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_a_row_a_run(records: list[RunRecord]) -> None:
    rows = read(runs_csv(records))
    assert [row["id"] for row in rows] == [record.id for record in records]
    assert float(rows[0]["final_average_accuracy"]) == records[0].final_average_accuracy
    assert rows[0]["method.name"] == "er"
    assert (rows[0]["method.a"], rows[1]["method.a"]) == ("", "1")
    assert rows[0]["execution.threads"] == "2"
    assert rows[0]["test_then_train_accuracy"] == ""


def test_a_row_a_cell(records: list[RunRecord]) -> None:
    layout = lay_out(records)
    tables = [metric_table(layout), metric_table(layout, "anytime_accuracy")]
    rows = read(cells_csv(layout, tables))
    assert len(rows) == 4
    best, other = rows[:2]
    assert (best["method"], best["mark"], best["n"]) == ("agd-fd", "best", "3")
    assert (other["mark"], other["compared_with"]) == ("second", "agd-fd")
    assert float(other["difference"]) == pytest.approx(0.4)
    assert float(other["p_corrected"]) < 0.05
    assert best["p"] == ""
    # s = 0.01, t(0.95, 2) = 4.3027, n = 3
    assert float(best["high"]) - float(best["mean"]) == pytest.approx(4.302653 * 0.01 / 3**0.5)


def test_names_with_commas_and_quotes_come_back(make_record: Build) -> None:
    name = 'a, "b"\n=c'
    (row,) = csv.DictReader(runs_csv([make_record(name)]).splitlines(keepends=True))
    assert row["method.name"] == name
