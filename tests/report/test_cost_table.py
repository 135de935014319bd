"""Costs beside accuracies, and comparisons at equal cost."""

import dataclasses
from collections.abc import Callable

import pytest

from sterad.errors import SteradError
from sterad.report.cost_table import cost_rows, find_bands, split_by_cost
from sterad.report.figures.cost import cost_section, draw_cost
from sterad.report.page import compose, render
from sterad.report.tables import build_table
from sterad.report.text import format_quantity
from sterad.report.write import markdown_report
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord, TrainingCost

Build = Callable[..., RunRecord]


def with_pixels(record: RunRecord, per_batch: float, accuracy: float = 0.5) -> RunRecord:
    cost = TrainingCost(per_batch * record.stream.steps, 0, 1e9, 2**20)
    return dataclasses.replace(record, cost=cost, final_average_accuracy=accuracy)


def three_methods(make_record: Build, seeds: int = 3) -> list[RunRecord]:
    """Return agd-fd and er at nearly equal cost, scr at twice that."""
    return [
        with_pixels(make_record(name, seed=seed), pixels, accuracy + 0.001 * seed)
        for name, pixels, accuracy in (("agd-fd", 1000, 0.7), ("er", 1090, 0.5), ("scr", 2000, 0.6))
        for seed in range(seeds)
    ]


def test_rows_are_ordered_by_pixels_and_the_front_is_marked(make_record: Build) -> None:
    rows = cost_rows(lay_out(three_methods(make_record)))
    assert [(row.method, row.pixels, row.is_on_front) for row in rows] == [
        ("agd-fd", 1000, True),
        ("er", 1090, False),
        ("scr", 2000, False),
    ]
    assert rows[0].accuracy.mean == pytest.approx(0.701)
    assert rows[0].state_bytes == 2**20


def test_bands_begin_with_the_lowest_cost() -> None:
    assert find_bands({0: 110.0, 1: 100.0, 2: 111.0}) == [[1, 0], [2]]
    assert find_bands({0: 5.0, 1: 0.0, 2: 0.0}) == [[1, 2], [0]]
    assert find_bands({}) == []


def test_methods_of_different_cost_are_not_compared(make_record: Build) -> None:
    layout = lay_out(three_methods(make_record))
    split = split_by_cost(layout)
    assert [column.parts[-1] for column in split.columns] == [
        "1 k to 1.09 k pixels",
        "2 k pixels",
    ]
    assert split.rows == layout.rows
    assert sum(map(len, split.cells.values())) == 9
    first, second = build_table(split).rankings
    assert {test.row for test in first.comparisons} == {1}, "er only"
    assert not second.comparisons
    (ranking,) = build_table(layout).rankings
    assert {test.row for test in ranking.comparisons} == {1, 2}


def test_records_without_counts_are_left_out_of_a_comparison_at_equal_cost(
    make_record: Build,
) -> None:
    records = three_methods(make_record, seeds=1)
    older = dataclasses.replace(records[2], cost=None)
    content = compose([*records[:2], older], equal_cost=True)
    assert [row.text for row in content.layout.rows] == ["agd-fd", "er"]
    assert content.left_out == [
        f"{older.id}: its record has no pixels, which --equal-cost compares: train it again"
    ]
    assert len(compose([*records[:2], older]).layout.rows) == 3
    with pytest.raises(SteradError, match="none of the 1 records has the pixels of its training"):
        compose([older], equal_cost=True)


def test_a_method_that_passes_no_pixels_is_the_cheapest(make_record: Build) -> None:
    free = with_pixels(make_record("slda"), 0, accuracy=0.9)
    layout = lay_out([*three_methods(make_record, seeds=1), free])
    assert [(row.method, row.is_on_front) for row in cost_rows(layout)] == [
        ("slda", True),
        *((name, False) for name in ("agd-fd", "er", "scr")),
    ]
    assert split_by_cost(layout).columns[0].parts[-1] == "0 pixels"
    section = cost_section(layout)
    assert section.figures[0].caption == (
        "Pareto front, from cheap to expensive: agd-fd. "
        "Not drawn, as they pass no pixels: slda (90.0 %)."
    )


def test_the_upper_bound_is_not_on_the_front(make_record: Build) -> None:
    joint = with_pixels(make_record("joint"), 100, accuracy=0.99)
    layout = lay_out([*three_methods(make_record, seeds=1), joint])
    fronts = {row.method: row.is_on_front for row in cost_rows(layout)}
    assert fronts == {"joint": False, "agd-fd": True, "er": False, "scr": False}
    only_joint = [("joint", [joint])]
    assert len(draw_cost(only_joint, "pixels_per_batch").axes[0].lines) == 1


def test_page_and_markdown_have_the_costs(make_record: Build) -> None:
    content = compose(three_methods(make_record), equal_cost=True)
    assert len(content.layout.columns) == 2
    fronts = [figure.name for s in content.sections if s.key == "cost" for figure in s.figures]
    assert len(fronts) == 2, "accuracy against cost is drawn for all methods together"
    page = render(dataclasses.replace(content, sections=()))
    assert 'id="costs"' in page
    assert "1.09 k" in page
    assert "| er | digits, clear | 1.09 k |" in markdown_report(content)


def test_without_counts_there_is_no_table(make_record: Build) -> None:
    content = compose([dataclasses.replace(make_record(), cost=None)])
    assert 'id="costs"' not in render(dataclasses.replace(content, sections=()))
    assert "## Cost" not in markdown_report(content)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (7.004, "7"), (99.96, "100"), (999.4, "999"), (999.6, "1 k"), (12_345, "12.3 k")],
)
def test_quantities_have_three_digits(number: float, text: str) -> None:
    assert format_quantity(number) == text
