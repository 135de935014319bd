import dataclasses
from collections.abc import Callable

from sterad.report.figures.sweep import draw_sweep, find_sweeps
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def test_variance_is_drawn_as_concentration(make_record: Build) -> None:
    records = [
        dataclasses.replace(
            make_record(m, seed=s, variance=v), final_average_accuracy=0.5 + v / 100
        )
        for m in ("agd-fd", "vmf-fd")
        for v in (0.5, 2.0, 8.0)
        for s in (0, 1)
    ]
    (sweep,) = find_sweeps(records)
    assert sweep.title == "concentration κ² = 1 / variance"
    assert [name for name, _ in sweep.lines] == ["agd-fd", "vmf-fd"]
    points = sweep.lines[0][1]
    assert [x for x, _ in points] == [0.125, 0.5, 2.0]
    assert [seeds for _, seeds in points] == [[0.58, 0.58], [0.52, 0.52], [0.505, 0.505]]
    axes = draw_sweep(sweep).axes[0]
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.125", "0.5", "2"]


def test_one_figure_per_setting_and_one_line_per_method(make_record: Build) -> None:
    records = [
        make_record(m, s, memory=n)
        for m in ("agd-fd", "er")
        for s in ("clear", "blurry")
        for n in (100, 200, 300)
    ]
    sweeps = find_sweeps(records)
    assert [(sweep.path, sweep.name) for sweep in sweeps] == [
        ("memory", "clear"),
        ("memory", "blurry"),
    ]
    assert [name for name, _ in sweeps[0].lines] == ["agd-fd", "er"]


def test_two_values_or_names_are_not_a_sweep(make_record: Build) -> None:
    assert find_sweeps([make_record(views=v) for v in (1, 2)]) == []
    assert find_sweeps([make_record(head=h) for h in ("mlp", "linear", "cosine")]) == []
    assert find_sweeps([make_record(flag=f) for f in (True, False)]) == []
    assert find_sweeps([]) == []


def test_a_method_with_one_value_has_no_line(make_record: Build) -> None:
    records = [*(make_record(views=v) for v in (1, 2, 3)), make_record("er", views=1)]
    (sweep,) = find_sweeps(records)
    assert [name for name, _ in sweep.lines] == ["agd-fd"]
