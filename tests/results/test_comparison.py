import numpy as np
import pytest
from scipy import stats

from sterad.results.comparison import (
    NO_DIFFERENCE,
    SIGNIFICANCE,
    TOO_FEW,
    Standing,
    holm,
    paired_p,
    standing,
)
from sterad.results.statistics import summarize


def marks(found: Standing) -> tuple[set[int], set[int]]:
    return set(found.best), set(found.second)


def seeds(mean: float, spread: float = 0.001, count: int = 10, own: int = 0) -> dict[object, float]:
    noise = np.random.default_rng(own).normal(size=count)
    return {seed: mean + spread * float(noise[seed]) for seed in range(count)}


@pytest.mark.parametrize("count", [2, 3, 10, 50])
@pytest.mark.parametrize("shift", [0.0, 0.01, 0.5])
def test_the_paired_test_is_that_of_scipy(count: int, shift: float) -> None:
    rng = np.random.default_rng(count)
    common = rng.normal(size=count)
    one, other = common + 0.1 * rng.normal(size=count) + shift, common
    wanted = stats.ttest_rel(one, other).pvalue
    assert paired_p(summarize((one - other).tolist())) == pytest.approx(wanted, rel=1e-9)


def test_equal_differences_leave_no_doubt() -> None:
    assert paired_p(summarize([0.0, 0.0, 0.0])) == 1.0
    assert paired_p(summarize([0.25, 0.25])) == 0.0


def test_holm_by_hand() -> None:
    # sorted: 0.01 * 4, 0.015 * 3, 0.02 * 2 (lifted to the one before), 0.4 * 1
    assert holm([0.02, 0.01, 0.4, 0.015]) == pytest.approx((0.045, 0.04, 0.4, 0.045))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


def test_holm_keeps_the_chance_of_a_false_difference() -> None:
    rng = np.random.default_rng(7)
    trials = [min(holm(rng.uniform(size=6).tolist())) <= SIGNIFICANCE for _ in range(4000)]
    assert 0.03 < np.mean(trials) < 0.06


def test_best_and_second_stand_apart() -> None:
    found = standing([seeds(0.7, own=1), seeds(0.9, own=2), seeds(0.8, own=3)])
    assert marks(found) == ({1}, {2})
    assert [found.mark(row) for row in range(3)] == ["", "best", "second"]
    assert found.unmarked == ""


def test_those_that_cannot_be_told_apart_share_a_mark() -> None:
    first = [seeds(0.9, 0.05, own=1), seeds(0.901, 0.05, own=2)]
    assert marks(standing([*first, seeds(0.3), seeds(0.3, own=5)])) == ({0, 1}, {2, 3})


def test_a_common_ground_makes_small_differences_real() -> None:
    ground = seeds(0.5, spread=0.1)
    slightly = {seed: value + 0.004 + 0.0001 * int(str(seed)) for seed, value in ground.items()}
    assert standing([ground, slightly]).best == {1}  # unpaired, nothing could be said


def test_noise_is_not_marked() -> None:
    found = standing([seeds(0.5, 0.1, own=own) for own in range(4)])
    assert marks(found) == (set(), set())
    assert found.unmarked == NO_DIFFERENCE
    assert len(found.comparisons) == 3


def test_too_few_seeds_say_nothing() -> None:
    one: dict[object, float] = {0: 0.9}
    assert standing([one, {0: 0.1}]).unmarked == TOO_FEW
    assert standing([{0: 0.9, 1: 0.9}, {2: 0.1, 3: 0.1}]).unmarked == TOO_FEW
    assert standing([one, seeds(0.1), seeds(0.2)]).unmarked == TOO_FEW


def test_who_cannot_be_compared_is_not_marked() -> None:
    found = standing([seeds(0.9), seeds(0.5, own=1), {0: 0.89}])
    assert marks(found) == ({0}, {1})


def test_nothing_to_compare() -> None:
    assert standing([]) == standing([seeds(0.5)]) == standing([None, {}, seeds(0.5)])
    assert standing([seeds(0.5)]).unmarked == ""


def test_who_takes_no_part_changes_nothing() -> None:
    found = standing([None, seeds(0.9, own=1), seeds(0.5)])
    assert marks(found) == ({1}, {2})


def test_lower_may_be_better() -> None:
    found = standing([seeds(0.1), seeds(0.5, own=1)], higher_is_better=False)
    assert marks(found) == ({0}, {1})


def test_a_noisy_method_is_not_marked_above_one_that_is_worse() -> None:
    noisy: dict[object, float] = {seed: 3 * (-1.0) ** seed for seed in range(10)}
    found = standing([seeds(0.9), seeds(0.5, own=1), noisy])
    assert [one.corrected < 0.05 for one in found.comparisons[:2]] == [True, False]
    assert marks(found) == ({0}, {1, 2})
