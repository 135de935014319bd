import dataclasses
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from sterad.report.figures.cost_accuracy import draw, front, placed

from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
POINTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(POINTS)
def test_nobody_beats_the_front_and_somebody_on_it_beats_the_rest(
    points: list[tuple[int, int]],
) -> None:
    found = front(points)
    for place, (cost, gain) in enumerate(points):
        better = [(c, g) for c, g in points if c <= cost and g >= gain and (c, g) != (cost, gain)]
        if place in found:
            assert not better
        else:
            assert any(points[k] in [*better, (cost, gain)] for k in found)


def test_points_are_means_over_seeds(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(seed=s), seconds=10.0 * (s + 1), final_average_accuracy=a)
        for s, a in enumerate((0.5, 0.7))
    ]
    old = dataclasses.replace(make_record("er"), images_per_step=0.0)
    methods = [("agd-fd", records), ("nobody", []), ("er", [old])]
    assert placed(methods, "seconds")[0] == (15.0, 60.0)
    assert list(placed(methods, "images_per_batch")) == [0]


def test_a_point_a_method_and_one_front(make_record: Build) -> None:
    methods = [("agd-fd", [make_record()]), ("finetune", [make_record("finetune")])]
    axes = draw(methods, "images_per_batch").axes[0]
    assert len(axes.lines) == 3
    assert axes.get_xscale() == "log"  # 10 and 444 images are far apart
