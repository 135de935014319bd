import dataclasses
import io
from collections.abc import Callable

import pytest
from rich.console import Console

from sterad.errors import SteradError
from sterad.report.tables import markdown_table, metric_table, terminal_table
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord
from sterad.results.statistics import Summary

Build = Callable[..., RunRecord]


@pytest.fixture
def records(make_record: Build) -> list[RunRecord]:
    """Three seeds of AGD-FD on clear, one on blurry, finetune on clear only."""
    accuracies = [("clear", 0, 0.90), ("clear", 1, 0.92), ("clear", 2, 0.97), ("blurry", 0, 0.95)]
    found = [
        dataclasses.replace(make_record("agd-fd", stream, seed), final_average_accuracy=accuracy)
        for stream, seed, accuracy in accuracies
    ]
    lower = dataclasses.replace(make_record("finetune"), final_average_accuracy=0.19)
    return [*found, lower]


def test_cells_by_hand(records: list[RunRecord]) -> None:
    table = metric_table(lay_out(records))
    (_, first), (_, second) = table.rows
    # mean 0.93; deviations -0.03, -0.01, 0.04; squares sum to 0.0026; half of it under the root
    assert first[0] is not None
    assert (first[0].mean, first[0].std) == pytest.approx((0.93, 0.0013**0.5))
    assert first[0].n == 3
    assert first[1] == Summary(0.95, None, 1)
    assert second == (Summary(0.19, None, 1), None)


def test_markdown_whole(records: list[RunRecord]) -> None:
    assert markdown_table(records) == (
        "| method | clear | blurry |\n"
        "|:--|--:|--:|\n"
        "| agd-fd | 93.00 ± 3.61 (n=3) | 95.00 (n=1) |\n"
        "| finetune | 19.00 (n=1) | – |\n"
    )


def test_a_metric_that_some_runs_lack_counts_those_that_have_it(records: list[RunRecord]) -> None:
    records[0] = dataclasses.replace(records[0], test_then_train_accuracy=0.5)
    table = markdown_table(records, "test_then_train_accuracy")
    assert "| agd-fd | 50.00 (n=1) | – |" in table


def test_markdown_keeps_its_columns_whatever_the_name(make_record: Build) -> None:
    table = markdown_table([make_record("a|b\n<i>")])
    assert table.splitlines()[2].startswith("| a\\|b \\<i> |")


def test_terminal_shows_the_same_numbers(records: list[RunRecord]) -> None:
    sink = io.StringIO()
    Console(file=sink, width=100).print(terminal_table(records))
    shown = sink.getvalue()
    for wanted in (
        "93.00 ± 3.61 (n=3)",
        "95.00 (n=1)",
        "–",
        "Final average accuracy (%)",
        "blurry",
    ):
        assert wanted in shown


def test_names_are_no_markup_in_the_terminal(make_record: Build) -> None:
    sink = io.StringIO()
    Console(file=sink, width=100).print(terminal_table([make_record("[red]mine[/red]")]))
    assert "[red]mine[/red]" in sink.getvalue()


def test_unknown_metric(records: list[RunRecord]) -> None:
    with pytest.raises(SteradError, match="did you mean 'anytime_accuracy'"):
        markdown_table(records, "anytime_acuracy")
