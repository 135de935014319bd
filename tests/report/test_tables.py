import dataclasses
from collections.abc import Callable

import pytest

from sterad.report.tables import build_table, format_summary
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord
from sterad.results.statistics import RULE, Summary

Build = Callable[..., RunRecord]
BuildMany = Callable[..., list[RunRecord]]


def test_cells_by_hand(records: list[RunRecord]) -> None:
    table = build_table(lay_out(records))
    (_, first), (_, second) = table.rows
    # mean 0.93; deviations -0.03, -0.01, 0.04; squares sum to 0.0026; half of it under the root
    assert first[0] is not None
    assert (first[0].mean, first[0].std) == pytest.approx((0.93, 0.0013**0.5))
    assert first[0].n == 3
    assert first[1] == Summary(0.95, None, 1)
    assert second == (Summary(0.19, None, 1), None)


def test_runs_without_the_metric_are_not_counted(records: list[RunRecord]) -> None:
    records[0] = dataclasses.replace(records[0], test_then_train_accuracy=0.5)
    table = build_table(lay_out(records), "test_then_train_accuracy")
    assert [format_summary(cell) for cell in table.rows[0][1]] == ["50.00 (n=1)", "–"]


def test_footnotes_explain_marks_and_missing_marks(records_at: BuildMany) -> None:
    records = records_at({"er": (0.5, 0.9), "agd-fd": (0.8, 0.7)})
    single = [r for r in records if r.stream.name == "clear" or r.config["seed"] == 0]
    notes = build_table(lay_out(single)).footnotes
    assert notes[0] == f"{RULE}."
    assert notes[1] == ("No marks in blurry: no other method shares 3 seeds with the best mean.")
    assert notes[2].startswith("Rank: ")
    assert build_table(lay_out(records[:1])).footnotes == ()


def test_different_precisions_have_a_footnote(make_record: Build) -> None:
    one, other = make_record("er"), make_record("scr")
    records = [
        dataclasses.replace(one, execution={**one.execution, "precision": "bfloat16"}),
        other,
    ]
    assert (
        "Runs have different precisions, bfloat16 and float32: --precision sets one for all."
        in build_table(lay_out(records)).footnotes
    )


def test_runs_that_continued_after_changes_have_a_footnote(make_record: Build) -> None:
    records = [dataclasses.replace(make_record("er"), changes=("the data changed",))]
    note = build_table(lay_out([*records, make_record("scr")])).footnotes[-1]
    assert note.startswith("1 of the runs continued after accepted changes")


def test_the_upper_bound_is_not_compared(records_at: BuildMany) -> None:
    records = records_at({"er": (0.5, 0.5), "joint": (0.95, 0.95), "scr": (0.7, 0.7)})
    table = build_table(lay_out(records))
    assert [label.text for label, _ in table.rows] == ["er", "joint", "scr"]
    assert [table.mark(row, 0) for row in range(3)] == ["second", "", "best"]
    assert table.ranks == (2.0, None, 1.0)
    assert "joint is an upper bound and is not compared." in table.footnotes


def test_lower_forgetting_is_better(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(m, seed=s), average_forgetting=level + 0.001 * (s % 2))
        for m, level in (("er", 0.4), ("agd-fd", 0.1))
        for s in range(4)
    ]
    table = build_table(lay_out(records), "average_forgetting")
    assert [table.mark(row, 0) for row in range(2)] == ["best", "second"]


def test_no_rank_without_runs_in_all_columns(records_at: BuildMany) -> None:
    records = records_at({"er": (0.5, 0.5), "agd-fd": (0.8, 0.8), "scr": (0.7, 0.7)})
    some = [r for r in records if (r.config["method"]["name"], r.stream.name) != ("scr", "blurry")]
    assert build_table(lay_out(some)).ranks == (1.0, 2.0, None)
