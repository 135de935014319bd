import math
from collections.abc import Callable

import pytest
from scipy import special, stats

from sterad.errors import SteradError
from sterad.results.student_t import incomplete_beta, quantile, two_sided_p

FREEDOM = [1, 2, 3, 4, 9, 29, 100, 1000]


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.3, 1.0, 2.5, 10.0, 300.0, 1e6])
def test_tails_are_those_of_scipy(t: float, freedom: int) -> None:
    wanted = 2 * stats.t.sf(t, freedom)
    assert two_sided_p(t, freedom) == pytest.approx(wanted, rel=1e-11, abs=1e-300)
    assert two_sided_p(-t, freedom) == two_sided_p(t, freedom)


def test_the_smallest_t_by_hand() -> None:
    # One degree of freedom is Cauchy's law: P(|T| > t) = 1 - 2 arctan(t) / π.
    assert two_sided_p(1e-8, 1) == pytest.approx(1 - 2e-8 / math.pi, abs=1e-16)
    assert two_sided_p(1e200, 3) == 0.0
    assert two_sided_p(math.inf, 3) == 0.0


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99, 0.9999])
def test_quantiles_are_those_of_scipy(level: float, freedom: int) -> None:
    wanted = stats.t.ppf((1 + level) / 2, freedom)
    assert quantile(level, freedom) == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize("a", [0.01, 0.5, 3.0, 80.0, 900.0])
@pytest.mark.parametrize("b", [0.02, 0.5, 7.0, 300.0])
def test_the_incomplete_beta_function_is_that_of_scipy(a: float, b: float) -> None:
    for x in (0.0, 1e-9, 0.2, 0.5, 0.77, 0.999, 1.0):
        assert incomplete_beta(x, a, b) == pytest.approx(special.betainc(a, b, x), abs=1e-12)


REFUSED: list[Callable[[], float]] = [
    lambda: two_sided_p(1.0, 0),
    lambda: quantile(1.0, 3),
    lambda: quantile(95, 3),
    lambda: incomplete_beta(1.5, 1, 1),
    lambda: incomplete_beta(0.5, 0, 1),
]


@pytest.mark.parametrize("refused", REFUSED)
def test_what_does_not_exist_is_refused(refused: Callable[[], float]) -> None:
    with pytest.raises(SteradError):
        refused()
