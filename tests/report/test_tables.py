import dataclasses
import io
from collections.abc import Callable

import pytest
from rich.console import Console

from sterad.errors import SteradError
from sterad.report.tables import markdown_table, metric_table, terminal_table
from sterad.results.comparison import RULE
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
    logger = io.StringIO()
    Console(file=logger, width=100).print(terminal_table(records))
    shown = logger.getvalue()
    for wanted in (
        "93.00 ± 3.61 (n=3)",
        "95.00 (n=1)",
        "–",
        "Final average accuracy (%)",
        "blurry",
    ):
        assert wanted in shown


def test_names_are_no_markup_in_the_terminal(make_record: Build) -> None:
    logger = io.StringIO()
    Console(file=logger, width=100).print(terminal_table([make_record("[red]mine[/red]")]))
    assert "[red]mine[/red]" in logger.getvalue()


def test_unknown_metric(records: list[RunRecord]) -> None:
    with pytest.raises(SteradError, match="did you mean 'anytime_accuracy'"):
        markdown_table(records, "anytime_acuracy")


def marked(make_record: Build, levels: dict[str, tuple[float, float]]) -> list[RunRecord]:
    """Five seeds of each method at its level under clear and under blurry."""
    return [
        dataclasses.replace(
            make_record(method, stream, seed), final_average_accuracy=level + 0.001 * (seed % 3)
        )
        for method, pair in levels.items()
        for stream, level in zip(("clear", "blurry"), pair, strict=True)
        for seed in range(5)
    ]


def test_best_and_second_are_marked_and_ranked(make_record: Build) -> None:
    records = marked(make_record, {"er": (0.5, 0.9), "agd-fd": (0.8, 0.7), "scr": (0.7, 0.6)})
    lines = markdown_table(records).splitlines()
    assert lines[0] == "| method | clear | blurry | rank |"
    assert lines[2] == "| agd-fd | **80.08 ± 0.08 (n=5)** | <ins>70.08 ± 0.08 (n=5)</ins> | 1.5 |"
    assert lines[3] == "| er | 50.08 ± 0.08 (n=5) | **90.08 ± 0.08 (n=5)** | 2.0 |"
    assert lines[4] == "| scr | <ins>70.08 ± 0.08 (n=5)</ins> | 60.08 ± 0.08 (n=5) | 2.5 |"
    logger = io.StringIO()
    Console(file=logger, width=100, force_terminal=True).print(terminal_table(records))
    assert "\x1b[1m" in logger.getvalue()
    assert "\x1b[4m" in logger.getvalue()
    assert "paired t-test" in logger.getvalue()


def test_the_footnotes_hold_the_rule_and_the_reasons(make_record: Build) -> None:
    records = marked(make_record, {"er": (0.5, 0.9), "agd-fd": (0.8, 0.7)})
    single = [r for r in records if r.stream.name == "clear" or r.config["seed"] == 0]
    notes = metric_table(lay_out(single)).footnotes
    assert notes[0] == f"{RULE}."
    assert notes[1] == (
        "Nothing is marked in blurry: no other method shares 3 seeds with the best mean, "
        "too few to compare."
    )
    assert notes[2].startswith("Rank: ")
    assert metric_table(lay_out(records[:1])).footnotes == ()


def test_runs_of_several_precisions_are_told(make_record: Build) -> None:
    one, other = make_record("er"), make_record("scr")
    records = [
        dataclasses.replace(one, execution={**one.execution, "precision": "bfloat16"}),
        other,
    ]
    assert (
        "Some runs were computed in bfloat16 and float32: --precision makes them alike."
        in metric_table(lay_out(records)).footnotes
    )


def test_the_upper_bound_competes_with_nobody(make_record: Build) -> None:
    records = marked(make_record, {"er": (0.5, 0.5), "joint": (0.95, 0.95), "scr": (0.7, 0.7)})
    table = metric_table(lay_out(records))
    assert [label.text for label, _ in table.rows] == ["er", "joint", "scr"]
    assert [table.mark(row, 0) for row in range(3)] == ["second", "", "best"]
    assert table.ranks == (2.0, None, 1.0)
    assert "joint is an upper bound and takes no part in the comparison." in table.footnotes


def test_little_forgetting_is_best(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(m, seed=s), average_forgetting=level + 0.001 * (s % 2))
        for m, level in (("er", 0.4), ("agd-fd", 0.1))
        for s in range(4)
    ]
    table = metric_table(lay_out(records), "average_forgetting")
    assert [table.mark(row, 0) for row in range(2)] == ["best", "second"]


def test_who_was_not_run_everywhere_has_no_rank(make_record: Build) -> None:
    records = marked(make_record, {"er": (0.5, 0.5), "agd-fd": (0.8, 0.8), "scr": (0.7, 0.7)})
    some = [r for r in records if (r.config["method"]["name"], r.stream.name) != ("scr", "blurry")]
    assert metric_table(lay_out(some)).ranks == (1.0, 2.0, None)
