import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from sterad.errors import SteradError
from sterad.results.statistics import (
    CONFIDENCE,
    Summary,
    incomplete_beta,
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


def test_no_values_raise_an_error() -> None:
    with pytest.raises(SteradError, match="at least one run"):
        summarize([])


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


@pytest.mark.parametrize("a", [0.01, 0.5, 3.0, 80.0, 900.0])
@pytest.mark.parametrize("b", [0.02, 0.5, 7.0, 300.0])
def test_incomplete_beta_agrees_with_scipy(a: float, b: float) -> None:
    for x in (0.0, 1e-9, 0.2, 0.5, 0.77, 0.999, 1.0):
        assert incomplete_beta(x, a, b) == pytest.approx(special.betainc(a, b, x), abs=1e-12)


INVALID_CALLS: list[Callable[[], float]] = [
    lambda: two_sided_p(1.0, 0),
    lambda: t_quantile(1.0, 3),
    lambda: t_quantile(95, 3),
    lambda: incomplete_beta(1.5, 1, 1),
    lambda: incomplete_beta(0.5, 0, 1),
]


@pytest.mark.parametrize("call", INVALID_CALLS)
def test_undefined_values_raise_an_error(call: Callable[[], float]) -> None:
    with pytest.raises(SteradError):
        call()
