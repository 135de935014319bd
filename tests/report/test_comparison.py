import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.report.comparison import compare_runs, describe_runs, render_comparison
from sterad.results.record import RunRecord
from sterad.results.stored_run import StoredRun

Build = Callable[..., RunRecord]


def stored(record: RunRecord) -> StoredRun:
    curve = tuple((moment.samples, moment.accuracy) for moment in record.moments)
    return StoredRun(Path(record.id), "finished", record.config, record, curve=curve)


def test_settings_metrics_tasks_and_cost(make_record: Build) -> None:
    first = dataclasses.replace(make_record(views=5), final_average_accuracy=0.9)
    second = dataclasses.replace(make_record(views=2), final_average_accuracy=0.95, seconds=82.5)
    comparison = compare_runs(stored(first), stored(second))
    assert comparison.settings == (("method.views", "5", "2"),)
    assert comparison.execution == ()
    best = comparison.metrics[0]
    assert (best.name, best.first, best.second) == ("Final average accuracy", "90.00", "95.00")
    assert best.difference == "+5.00"
    assert [row.name for row in comparison.tasks] == [f"task {k}" for k in range(1, 6)]
    assert comparison.cost[0].difference == "× 2.00"


def test_equal_runs_do_not_differ(make_record: Build) -> None:
    comparison = compare_runs(stored(make_record()), stored(make_record()))
    assert comparison.settings == comparison.execution == ()
    assert {row.difference for row in comparison.metrics} == {"0.00"}
    assert "All settings are equal." in render_comparison(comparison)


def test_a_lower_value_has_a_minus(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(), final_average_accuracy=a) for a in (0.95, 0.9, 0.899999)
    ]
    first, second, third = map(stored, records)
    assert compare_runs(first, second).metrics[0].difference == "-5.00"
    assert compare_runs(second, third).metrics[0].difference == "0.00"


def test_other_tasks_are_not_compared(make_record: Build) -> None:
    comparison = compare_runs(stored(make_record(seed=0)), stored(make_record(seed=1)))
    assert comparison.tasks == ()
    assert describe_runs(comparison) == ("A agd-fd, seed 0", "B agd-fd, seed 1")


def test_the_page_has_both_curves_in_one_figure(make_record: Build) -> None:
    comparison = compare_runs(stored(make_record()), stored(make_record("finetune")))
    page = render_comparison(comparison)
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert len(figures) == 4  # accuracy, forgetting, two matrices
    assert all(name in figures[0] for name in ("A agd-fd", "B finetune"))
    for forbidden in ("http:", "https:", "@import", " src="):
        assert forbidden not in page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_names_are_escaped(make_record: Build) -> None:
    script = "<script>alert(1)</script>"
    page = render_comparison(compare_runs(stored(make_record(script)), stored(make_record())))
    assert script not in page
    assert page.count("<script>") == 2


def test_only_finished_runs_have_a_page(make_record: Build) -> None:
    started = StoredRun(Path("a"), "unfinished", {"seed": 0})
    comparison = compare_runs(started, stored(make_record()))
    assert comparison.metrics[0].first == "–"
    assert comparison.cost == comparison.tasks == ()
    with pytest.raises(SteradError, match="the run a is unfinished"):
        render_comparison(comparison)
    with pytest.raises(SteradError, match="it is broken"):
        compare_runs(StoredRun(Path("a"), "damaged", {}, problem="it is broken"), started)
