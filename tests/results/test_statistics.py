import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sterad.errors import SteradError
from sterad.results.statistics import CONFIDENCE, Summary, ranks, summarize


def test_sample_deviation_by_hand() -> None:
    # deviations -1.5, -0.5, 0.5, 1.5; squares sum to 5; 5 / 3 under the root
    found = summarize([1.0, 2.0, 3.0, 4.0])
    assert (found.mean, found.n) == (2.5, 4)
    assert found.std == pytest.approx(1.2909944487358056, rel=1e-15)


def test_one_value_has_no_spread() -> None:
    assert summarize([0.3]) == Summary(0.3, None, 1)


def test_no_value_is_refused() -> None:
    with pytest.raises(SteradError, match="at least one run"):
        summarize([])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_agrees_with_numpy(values: list[float]) -> None:
    found = summarize(iter(values))
    assert found.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert found.std == pytest.approx(np.std(values, ddof=1), abs=1e-12)


@pytest.mark.parametrize("count", [2, 3, 10, 40])
def test_the_interval_is_that_of_scipy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    found = summarize(values.tolist())
    low, high = stats.t.interval(CONFIDENCE, count - 1, values.mean(), stats.sem(values))
    assert found.margin is not None
    assert (found.mean - found.margin, found.mean + found.margin) == pytest.approx((low, high))


def test_one_value_has_no_interval() -> None:
    assert summarize([0.3]).margin is None


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7]), max_size=12))
def test_ranks_are_those_of_scipy(values: list[float]) -> None:
    assert ranks(values) == tuple(stats.rankdata([-value for value in values]))
