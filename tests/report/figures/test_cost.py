import dataclasses
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from sterad.report.figures.cost import cost_section, draw_cost, draw_time, mean_costs, pareto_front
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
POINTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(POINTS)
def test_the_front_dominates_all_other_points(
    points: list[tuple[int, int]],
) -> None:
    front = pareto_front(dict(enumerate(points)))
    for position, (cost, gain) in enumerate(points):
        better = [(c, g) for c, g in points if c <= cost and g >= gain and (c, g) != (cost, gain)]
        if position in front:
            assert not better
        else:
            assert any(points[k] in [*better, (cost, gain)] for k in front)


def test_costs_are_means_over_seeds(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(seed=s), seconds=10.0 * (s + 1), final_average_accuracy=a)
        for s, a in enumerate((0.5, 0.7))
    ]
    without_images = dataclasses.replace(make_record("er"), images_per_step=0.0)
    methods = [("agd-fd", records), ("absent", []), ("er", [without_images])]
    assert mean_costs(methods, "seconds")[0] == (15.0, 60.0)
    assert list(mean_costs(methods, "images_per_batch")) == [0]


def test_one_point_per_method_and_one_front(make_record: Build) -> None:
    methods = [("agd-fd", [make_record()]), ("finetune", [make_record("finetune")])]
    axes = draw_cost(methods, "images_per_batch").axes[0]
    assert len(axes.lines) == 3
    assert axes.get_xscale() == "log"  # 10 and 444 images


def test_images_are_drawn_only_for_methods_without_pixels(make_record: Build) -> None:
    def names(*records: RunRecord) -> list[str]:
        return [figure.name for figure in cost_section(lay_out(records)).figures]

    records = [make_record(), make_record("finetune"), make_record("er")]
    assert [name.rpartition(": ")[2] for name in names(*records)] == [
        "pixels through the network per batch",
        "seconds per run",
    ]
    older = [dataclasses.replace(record, cost=None) for record in records]
    assert sum("images" in name for name in names(*records[:2], older[2])) == 1
    assert sum("pixels" in name for name in names(*older)) == 0


def test_one_bar_per_method_in_a_suitable_unit(make_record: Build) -> None:
    slow = [dataclasses.replace(make_record(seed=s), seconds=600.0 + 60 * s) for s in range(3)]
    methods = [("agd-fd", slow), ("absent", []), ("finetune", [make_record("finetune")])]
    axes = draw_time(methods).axes[0]
    assert [round(bar.get_width(), 2) for bar in axes.patches] == [11.0, 0.16]  # type: ignore[attr-defined]
    assert axes.get_xlabel() == "minutes per run"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["agd-fd", "finetune"]
    assert [text.get_text() for text in axes.texts] == ["11.0", "0.2"]
