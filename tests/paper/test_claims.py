from collections.abc import Callable

import pytest

from sterad.paper.claims import Claim, claims, comparisons
from sterad.paper.points import Point, paper_points, points_of
from sterad.results.record import RunRecord

Make = Callable[..., RunRecord]
CLEAR = {"dataset": "cifar100", "stream": "clear", "memory": 5000}


def papers() -> list[Point]:
    return list(paper_points())


def claim(start: str) -> Claim:
    (one,) = [found for found in claims() if found.sentence.startswith(start)]
    return one


@pytest.mark.parametrize("one", claims(), ids=lambda one: one.sentence)
def test_every_claim_holds_in_the_paper_itself(one: Claim) -> None:
    found = comparisons(one, papers())
    assert found or one.where == "figure 3", "the numbers of the figures are not printed"
    assert not [c for c in found if c.against]


@pytest.mark.parametrize(
    ("start", "count"),
    [
        ("With clear boundaries and many", 9 * 6),
        ("On blurry streams AGD-FD", 8 * 8),
        ("AGD-FD is more accurate than vMF-FD", 16),
        ("Fixed directions need no boundaries", 2 * 8),
        ("Fixed directions are more accurate than moving", 6),
        ("Moving means need", 1),
        ("More views help", 3),
        ("Fixed directions are more accurate than baselines", 2 * (8 + 8 + 7)),
        ("AGD-FD is more accurate than ER on", 3),
    ],
)
def test_a_claim_is_made_of_all_its_comparisons(start: str, count: int) -> None:
    assert len(comparisons(claim(start), papers())) == count


def test_only_runs_that_differ_in_nothing_else_are_compared(make: Make) -> None:
    blurry = {"dataset": "cifar100", "stream": "blurry", "memory": 500}
    agd, er = {"method": "agd-fd"} | blurry, {"method": "er"} | blurry
    one = claim("On blurry streams AGD-FD")
    assert len(comparisons(one, points_of([make(agd, 30), make(er, 20)]))) == 1
    assert not comparisons(one, points_of([make(agd, 30), make(er, 20, width=20)]))
    assert not comparisons(one, points_of([make(agd, 30), make(er | {"memory": 200}, 20)]))
    assert not comparisons(one, points_of([make(agd, 30), make(er | {"stream": "clear"}, 20)]))


def test_of_several_settings_of_a_method_the_released_count_not_the_best(make: Make) -> None:
    agd, er = {"method": "agd-fd"} | CLEAR, {"method": "er"} | CLEAR
    tried = [make(er, 40, **{"method.lr": lr}) for lr in (0.1, 0.2)]
    found = points_of([make(agd, 30), *tried, make(er, 20)])
    (comparison,) = comparisons(claim("With clear boundaries and many"), found)
    assert comparison.worse.mean == pytest.approx(20)


def test_the_best_concentration_is_the_tried_one_that_is_nearest(make: Make) -> None:
    vmf = {"method": "vmf-fd"} | CLEAR
    tried = {0.05: 40.0, 0.2: 45.0, 2: 41.0}
    found = points_of([make(vmf, a, **{"method.variance": v}) for v, a in tried.items()])
    pairs = comparisons(claim("The best concentration of vMF-FD"), found)
    assert {c.better.settings["method.variance"] for c in pairs} == {0.2}
    assert {c.worse.settings["method.variance"] for c in pairs} == {0.05, 2}
