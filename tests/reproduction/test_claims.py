from collections.abc import Callable

import pytest

from sterad.results.record import RunRecord
from sterad_reproduction.claims import Claim, find_comparisons, load_claims
from sterad_reproduction.numbers import group_runs, paper_results

Make = Callable[..., RunRecord]
CLEAR = {"dataset": "cifar100", "stream": "clear", "memory": 5000}


def find_claim(start: str) -> Claim:
    (claim,) = [claim for claim in load_claims() if claim.sentence.startswith(start)]
    return claim


@pytest.mark.parametrize("claim", load_claims(), ids=lambda claim: claim.sentence)
def test_every_claim_holds_in_the_paper(claim: Claim) -> None:
    found = find_comparisons(claim, paper_results())
    assert found or claim.source == "figure 3", "the paper prints no numbers of its figures"
    assert not any(comparison.contradicts for comparison in found)


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
def test_number_of_comparisons_per_claim(start: str, count: int) -> None:
    assert len(find_comparisons(find_claim(start), paper_results())) == count


def test_only_runs_with_otherwise_equal_settings_are_compared(make: Make) -> None:
    blurry = {"dataset": "cifar100", "stream": "blurry", "memory": 500}
    agd, er = {"method": "agd-fd"} | blurry, {"method": "er"} | blurry
    claim = find_claim("On blurry streams AGD-FD")
    assert len(find_comparisons(claim, group_runs([make(agd, 30), make(er, 20)]))) == 1
    assert not find_comparisons(claim, group_runs([make(agd, 30), make(er, 20, width=20)]))
    assert not find_comparisons(claim, group_runs([make(agd, 30), make(er | {"memory": 200}, 20)]))
    assert not find_comparisons(
        claim, group_runs([make(agd, 30), make(er | {"stream": "clear"}, 20)])
    )


def test_released_values_are_compared_rather_than_the_best(make: Make) -> None:
    agd, er = {"method": "agd-fd"} | CLEAR, {"method": "er"} | CLEAR
    variants = [make(er, 40, **{"method.lr": lr}) for lr in (0.1, 0.2)]
    found = group_runs([make(agd, 30), *variants, make(er, 20)])
    (comparison,) = find_comparisons(find_claim("With clear boundaries and many"), found)
    assert comparison.worse.mean == pytest.approx(20)


def test_the_nearest_concentration_is_compared_with_the_others(make: Make) -> None:
    vmf = {"method": "vmf-fd"} | CLEAR
    accuracies = {0.05: 40.0, 0.2: 45.0, 2: 41.0}
    found = group_runs([make(vmf, a, **{"method.variance": v}) for v, a in accuracies.items()])
    pairs = find_comparisons(find_claim("The best concentration of vMF-FD"), found)
    assert {c.better.settings["method.variance"] for c in pairs} == {0.2}
    assert {c.worse.settings["method.variance"] for c in pairs} == {0.05, 2}
