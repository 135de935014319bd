import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sterad.results.statistics import (
    CONFIDENCE,
    NO_DIFFERENCE,
    SIGNIFICANCE,
    TOO_FEW_SEEDS,
    Ranking,
    Summary,
    correct_holm,
    paired_p,
    rank_methods,
    rank_values,
    summarize,
    t_quantile,
    two_sided_p,
)

FREEDOM = [1, 2, 3, 4, 9, 29, 100, 1000]


def test_standard_deviation_by_hand() -> None:
    # deviations -1.5, -0.5, 0.5, 1.5; squares sum to 5; 5 / 3 under the root
    summary = summarize([1.0, 2.0, 3.0, 4.0])
    assert (summary.mean, summary.n) == (2.5, 4)
    assert summary.std == pytest.approx(1.2909944487358056, rel=1e-15)


def test_one_value_has_no_standard_deviation() -> None:
    assert summarize([0.3]) == Summary(0.3, None, 1)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_summary_agrees_with_numpy(values: list[float]) -> None:
    summary = summarize(iter(values))
    assert summary.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert summary.std == pytest.approx(np.std(values, ddof=1), abs=1e-12)


@pytest.mark.parametrize("count", [2, 3, 10, 40])
def test_interval_agrees_with_scipy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    summary = summarize(values.tolist())
    low, high = stats.t.interval(CONFIDENCE, count - 1, values.mean(), stats.sem(values))
    assert summary.margin is not None
    assert (summary.mean - summary.margin, summary.mean + summary.margin) == pytest.approx(
        (low, high)
    )


def test_one_value_has_no_interval() -> None:
    assert summarize([0.3]).margin is None


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7]), max_size=12))
def test_ranks_agree_with_scipy(values: list[float]) -> None:
    assert rank_values(values) == tuple(stats.rankdata([-value for value in values]))


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.3, 1.0, 2.5, 10.0, 300.0, 1e6])
def test_p_values_agree_with_scipy(t: float, freedom: int) -> None:
    expected = 2 * stats.t.sf(t, freedom)
    assert two_sided_p(t, freedom) == pytest.approx(expected, rel=1e-11, abs=1e-300)
    assert two_sided_p(-t, freedom) == two_sided_p(t, freedom)


def test_p_values_of_extreme_t() -> None:
    # One degree of freedom is the Cauchy distribution: P(|T| > t) = 1 - 2 arctan(t) / π.
    assert two_sided_p(1e-8, 1) == pytest.approx(1 - 2e-8 / math.pi, abs=1e-16)
    assert two_sided_p(1e200, 3) == 0.0
    assert two_sided_p(math.inf, 3) == 0.0


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99, 0.9999])
def test_quantiles_agree_with_scipy(level: float, freedom: int) -> None:
    expected = stats.t.ppf((1 + level) / 2, freedom)
    assert t_quantile(level, freedom) == pytest.approx(expected, rel=1e-11)


def marks(ranking: Ranking) -> tuple[set[int], set[int]]:
    return set(ranking.best), set(ranking.second)


def seeds(
    mean: float, spread: float = 0.001, count: int = 10, rng_seed: int = 0
) -> dict[object, float]:
    noise = np.random.default_rng(rng_seed).normal(size=count)
    return {seed: mean + spread * float(noise[seed]) for seed in range(count)}


@pytest.mark.parametrize("count", [2, 3, 10, 50])
@pytest.mark.parametrize("shift", [0.0, 0.01, 0.5])
def test_paired_test_agrees_with_scipy(count: int, shift: float) -> None:
    rng = np.random.default_rng(count)
    common = rng.normal(size=count)
    one, other = common + 0.1 * rng.normal(size=count) + shift, common
    expected = stats.ttest_rel(one, other).pvalue
    assert paired_p(summarize((one - other).tolist())) == pytest.approx(expected, rel=1e-9)


def test_p_value_of_equal_differences() -> None:
    assert paired_p(summarize([0.0, 0.0, 0.0])) == 1.0
    assert paired_p(summarize([0.25, 0.25])) == 0.0


def test_holm_by_hand() -> None:
    # sorted: 0.01 * 4, 0.015 * 3, 0.02 * 2 (lifted to the one before), 0.4 * 1
    assert correct_holm([0.02, 0.01, 0.4, 0.015]) == pytest.approx((0.045, 0.04, 0.4, 0.045))
    assert correct_holm([0.9, 0.8]) == (1.0, 1.0)
    assert correct_holm([]) == ()


def test_holm_controls_the_error_rate() -> None:
    rng = np.random.default_rng(7)
    trials = [min(correct_holm(rng.uniform(size=6).tolist())) <= SIGNIFICANCE for _ in range(4000)]
    assert 0.03 < np.mean(trials) < 0.06


def test_best_and_second_are_marked() -> None:
    ranking = rank_methods([seeds(0.7, rng_seed=1), seeds(0.9, rng_seed=2), seeds(0.8, rng_seed=3)])
    assert marks(ranking) == ({1}, {2})
    assert ranking.unmarked == ""


def test_indistinguishable_methods_share_a_mark() -> None:
    first = [seeds(0.9, 0.05, rng_seed=1), seeds(0.901, 0.05, rng_seed=2)]
    assert marks(rank_methods([*first, seeds(0.3), seeds(0.3, rng_seed=5)])) == ({0, 1}, {2, 3})


def test_paired_seeds_make_small_differences_significant() -> None:
    base = seeds(0.5, spread=0.1)
    shifted = {seed: value + 0.004 + 0.0001 * int(str(seed)) for seed, value in base.items()}
    assert rank_methods([base, shifted]).best == {1}  # an unpaired test finds no difference


def test_no_marks_without_significant_differences() -> None:
    ranking = rank_methods([seeds(0.5, 0.1, rng_seed=s) for s in range(4)])
    assert marks(ranking) == (set(), set())
    assert ranking.unmarked == NO_DIFFERENCE
    assert len(ranking.comparisons) == 3


def test_no_marks_with_too_few_common_seeds() -> None:
    one: dict[object, float] = {0: 0.9}
    assert rank_methods([one, {0: 0.1}]).unmarked == TOO_FEW_SEEDS
    assert rank_methods([{0: 0.9, 1: 0.9}, {2: 0.1, 3: 0.1}]).unmarked == TOO_FEW_SEEDS
    assert rank_methods([one, seeds(0.1), seeds(0.2)]).unmarked == TOO_FEW_SEEDS


def test_a_method_with_too_few_seeds_is_not_marked() -> None:
    ranking = rank_methods([seeds(0.9), seeds(0.5, rng_seed=1), {0: 0.89}])
    assert marks(ranking) == ({0}, {1})


def test_fewer_than_two_methods_have_an_empty_ranking() -> None:
    assert rank_methods([]) == rank_methods([seeds(0.5)]) == rank_methods([{}, {}, seeds(0.5)])
    assert rank_methods([seeds(0.5)]).unmarked == ""


def test_excluded_methods_do_not_change_the_marks() -> None:
    ranking = rank_methods([{}, seeds(0.9, rng_seed=1), seeds(0.5)])
    assert marks(ranking) == ({1}, {2})


def test_lower_is_better() -> None:
    ranking = rank_methods([seeds(0.1), seeds(0.5, rng_seed=1)], higher_is_better=False)
    assert marks(ranking) == ({0}, {1})


def test_a_noisy_method_is_not_marked_above_a_significantly_worse_one() -> None:
    noisy: dict[object, float] = {seed: 3 * (-1.0) ** seed for seed in range(10)}
    ranking = rank_methods([seeds(0.9), seeds(0.5, rng_seed=1), noisy])
    assert [test.corrected < 0.05 for test in ranking.comparisons[:2]] == [True, False]
    assert marks(ranking) == ({0}, {1, 2})
