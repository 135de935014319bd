"""Tests of a law against points and of laws against each other: scipy, sizes and power."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere import (
    AngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphericalCauchy,
    Uniform,
    VonMisesFisher,
)
from sterad.sphere.goodness_of_fit import (
    kolmogorov_smirnov_test,
    kolmogorov_tail,
    likelihood_ratio_test,
    vuong_test,
)

POLE = torch.eye(4, dtype=torch.float64)[0]
LAW = VonMisesFisher(POLE, 5.0)


def draws(law: VonMisesFisher | SphericalCauchy, count: int, seed: int = 0) -> Tensor:
    return law.sample((count,), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("n", [1, 2, 5, 40, 300, 2000])
def test_kolmogorovs_distribution_equals_scipys(n: int) -> None:
    for p in (0.99, 0.5, 0.05, 1e-3):
        distance = float(scipy.stats.kstwo.isf(p, n))
        # Above 140 points scipy has an approximation itself, good to about 1e-5 of p.
        assert kolmogorov_tail(distance, n) == pytest.approx(p, rel=1e-8 if n < 140 else 1e-4)


@pytest.mark.parametrize("n", [2001, 20_000])
def test_kolmogorovs_distribution_for_many_points(n: int) -> None:
    for p in (0.99, 0.5, 0.05, 1e-3):
        distance = float(scipy.stats.kstwo.isf(p, n))
        assert kolmogorov_tail(distance, n) == pytest.approx(p, rel=2e-3)
    assert kolmogorov_tail(0.0, n) == 1


def test_a_known_law_equals_scipys_test() -> None:
    points = draws(LAW, 200)
    found = kolmogorov_smirnov_test(points, LAW)
    cosines = (points @ POLE).numpy()
    expected = scipy.stats.kstest(cosines, lambda t: LAW.cdf(torch.from_numpy(t)).numpy())
    assert float(found.statistic) == pytest.approx(expected.statistic, rel=1e-10)
    assert float(found.p_value) == pytest.approx(expected.pvalue, rel=1e-4)


def test_the_power_spherical_cosine_has_a_beta_distribution() -> None:
    law = PowerSpherical(POLE, 3.0)
    points = law.sample((150,), generator=torch.Generator().manual_seed(2))
    found = kolmogorov_smirnov_test(points, law)
    beta = scipy.stats.beta(3 + 1.5, 1.5)
    expected = scipy.stats.kstest(((1 + points @ POLE) / 2).numpy(), beta.cdf)
    assert float(found.statistic) == pytest.approx(expected.statistic, rel=1e-8)


def test_a_wrong_law_is_rejected_and_the_right_one_is_not() -> None:
    generator = torch.Generator().manual_seed(0)
    points = draws(SphericalCauchy(POLE, 20.0), 300)
    wrong, right = (cls.fit(points).law for cls in (VonMisesFisher, SphericalCauchy))
    assert float(kolmogorov_smirnov_test(points, wrong, 99, generator).p_value) == 0.01
    assert float(kolmogorov_smirnov_test(points, right, 99, generator).p_value) > 0.05


@pytest.mark.slow
def test_degrees_of_freedom_stay_fixed_in_the_resamples() -> None:
    law = ProjectedStudentT(POLE, 2.0, 4.0)
    points = law.sample((40,), generator=torch.Generator().manual_seed(3))
    fitted = ProjectedStudentT.fit(points, df=4.0).law
    result = kolmogorov_smirnov_test(points, fitted, 9, torch.Generator().manual_seed(0))
    assert 0.1 <= float(result.p_value) <= 1


@pytest.mark.slow
def test_size_with_fitted_parameters() -> None:
    """The bootstrap rejects 5 %; the plain p-value of a fitted law would reject far fewer."""
    generator = torch.Generator().manual_seed(0)
    count, p_values, plain = 300, [], []
    for seed in range(count):
        points = draws(LAW, 50, seed)
        law = VonMisesFisher.fit(points).law
        p_values.append(float(kolmogorov_smirnov_test(points, law, 99, generator).p_value))
        plain.append(float(kolmogorov_smirnov_test(points, law).p_value))
    limit = 3 * math.sqrt(0.05 * 0.95 / count)
    assert abs(np.mean(np.array(p_values) <= 0.05) - 0.05) < limit
    assert np.mean(np.array(plain) <= 0.05) < 0.02


def test_size_with_a_known_law() -> None:
    p_values = [float(kolmogorov_smirnov_test(draws(LAW, 30, s), LAW).p_value) for s in range(300)]
    assert abs(np.mean(np.array(p_values) <= 0.05) - 0.05) < 3.3 * math.sqrt(0.05 * 0.95 / 300)


def test_size_of_the_likelihood_ratio() -> None:
    """Under uniformity the fit of von Mises-Fisher gains a χ² of d degrees of freedom."""
    uniform = Uniform(3, dtype=torch.float64)
    points = uniform.sample((2000, 60), generator=torch.Generator().manual_seed(1))
    result = likelihood_ratio_test(Uniform.fit(points), VonMisesFisher.fit(points))
    share = float((result.p_value < 0.05).double().mean())
    assert abs(share - 0.05) < 3.3 * math.sqrt(0.05 * 0.95 / 2000)
    ks = scipy.stats.kstest(result.statistic.numpy(), scipy.stats.chi2(3).cdf)
    assert ks.pvalue > 1e-3


def test_vuongs_test_finds_the_nearer_law() -> None:
    points = draws(SphericalCauchy(POLE, 20.0), 400)
    cauchy, fisher = SphericalCauchy.fit(points), VonMisesFisher.fit(points)
    result = vuong_test(points, cauchy, fisher)
    gaps = (cauchy.law.log_prob(points) - fisher.law.log_prob(points)).numpy()
    expected = gaps.sum() / (gaps.std() * math.sqrt(400))
    assert float(result.statistic) == pytest.approx(expected, rel=1e-10)
    p_value = 2 * scipy.stats.norm.sf(abs(expected))
    assert float(result.p_value) == pytest.approx(p_value, rel=1e-8)
    assert float(result.p_value) < 0.01
    other = vuong_test(points, fisher, cauchy)
    assert float(other.statistic) == pytest.approx(-expected, rel=1e-10)


def test_bad_input_raises_a_sentence() -> None:
    points = draws(LAW, 20)
    fit, uniform = VonMisesFisher.fit(points), Uniform.fit(points)
    with pytest.raises(SteradError, match="law with fewer parameters first"):
        likelihood_ratio_test(fit, uniform)
    with pytest.raises(SteradError, match="different numbers of points"):
        likelihood_ratio_test(Uniform.fit(points[:9]), fit)
    with pytest.raises(SteradError, match="cannot tell them apart"):
        vuong_test(points, fit, fit)
    with pytest.raises(SteradError, match="not a law of the cosine"):
        kolmogorov_smirnov_test(points, Uniform(4))  # type: ignore[arg-type]
    with pytest.raises(SteradError, match=r"batch shape \(2,\)"):
        kolmogorov_smirnov_test(points, AngularGaussian(torch.eye(4)[:2], 1.0))
    with pytest.raises(SteradError, match="resamples is -1"):
        kolmogorov_smirnov_test(points, LAW, -1)
