"""Tests of uniformity: literal formulas, null distributions, sizes and power."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere import Uniform, VonMisesFisher
from sterad.sphere.uniformity import (
    ajne_test,
    chi_squared_tail,
    gine_test,
    null_weights,
    rayleigh_test,
    weighted_chi_squared_tail,
)

TESTS = [rayleigh_test, ajne_test, gine_test]


def uniform_points(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    law = Uniform(shape[-1], dtype=torch.float64)
    return law.sample(shape[:-1], generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_statistics_equal_literal_sums(dimension: int) -> None:
    points = uniform_points((13, dimension))
    rows, n, d = points.numpy(), 13, dimension
    angles = [math.acos(float(rows[i] @ rows[j])) for i in range(n) for j in range(i + 1, n)]
    resultant = rows.sum(0) / n
    s = d * n * float(resultant @ resultant)
    expected = s * (1 - 1 / (2 * n)) + s**2 / (2 * n * (d + 2))
    assert float(rayleigh_test(points).statistic) == pytest.approx(expected, rel=1e-12)
    ajne = n / 4 - sum(angles) / (math.pi * n)
    assert float(ajne_test(points).statistic) == pytest.approx(ajne, rel=1e-12)
    ratio = (math.gamma((d - 1) / 2) / math.gamma(d / 2)) ** 2
    gine = n / 2 - (d - 1) / (2 * n) * ratio * sum(map(math.sin, angles))
    assert float(gine_test(points).statistic) == pytest.approx(ajne + gine, rel=1e-12)


@pytest.mark.parametrize("df", [1, 3, 64, 4096])
def test_chi_squared_tail_equals_scipys(df: int) -> None:
    values = torch.linspace(0.1, 3, 20, dtype=torch.float64) * df
    expected = scipy.stats.chi2.sf(values.numpy(), df)
    # torch.special.gammaincc is good to about 1e-9.
    np.testing.assert_allclose(chi_squared_tail(values, df), expected, rtol=1e-8, atol=1e-14)


def test_tail_of_weighted_sums() -> None:
    weights, counts = torch.tensor([2.0, 0.5]).double(), torch.tensor([3.0, 40.0]).double()
    rng = np.random.default_rng(0)
    drawn = 2 * rng.chisquare(3, 400_000) + 0.5 * rng.chisquare(40, 400_000)
    values = torch.tensor([15.0, 25.0, 40.0], dtype=torch.float64)
    expected = np.array([(drawn > float(value)).mean() for value in values])
    error = np.sqrt(expected * (1 - expected) / len(drawn))
    found = weighted_chi_squared_tail(values, weights, counts).numpy()
    assert (np.abs(found - expected) < 5 * error).all()


def test_weights_of_ajnes_test_on_the_circle() -> None:
    """The kernel 1/4 - θ/2π has the Fourier coefficients 1/(πk)² for odd k, and 0 for even k."""
    weights, counts, rest = null_weights(lambda angle: 0.25 - angle / (2 * math.pi), 2)
    expected = torch.tensor([1 / (math.pi**2 * k**2) for k in range(1, 60, 2)]).double()
    assert torch.allclose(weights, expected, rtol=1e-4)
    assert (counts == 2).all()
    assert 0 < rest < 0.01


@pytest.mark.parametrize("dimension", [2, 3, 64])
@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_size(test: object, dimension: int) -> None:
    """Of 1,000 uniform samples about 5 % are rejected: within 3.3 binomial standard errors."""
    assert callable(test)
    p_values = test(uniform_points((1000, 30, dimension), seed=dimension)).p_value
    for level in (0.05, 0.5):
        limit = 3.3 * math.sqrt(level * (1 - level) / 1000)
        assert abs(float((p_values < level).double().mean()) - level) < limit


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 8, 512])
@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_size_with_many_samples(test: object, dimension: int) -> None:
    assert callable(test)
    count = 8000 if dimension < 512 else 1500
    batches = [
        test(uniform_points((500, 60, dimension), seed=seed)).p_value
        for seed in range(count // 500)
    ]
    limit = 3 * math.sqrt(0.05 * 0.95 / count)
    assert abs(float((torch.cat(batches) < 0.05).double().mean()) - 0.05) < limit


def test_power() -> None:
    directed = VonMisesFisher(torch.eye(5, dtype=torch.float64)[0], 2.0)
    points = directed.sample((100,), generator=torch.Generator().manual_seed(1))
    for test in TESTS:
        assert float(test(points).p_value) < 1e-3
    axial = torch.cat([points[:50], -points[50:]])
    axial = torch.nn.functional.normalize(axial * torch.tensor([3.0, 1, 1, 1, 1]).double(), dim=1)
    assert float(gine_test(axial).p_value) < 1e-3
    assert float(rayleigh_test(torch.cat([axial, -axial])).p_value) == pytest.approx(1)


def test_bad_input_raises_a_sentence() -> None:
    with pytest.raises(SteradError, match="at least 2 rows"):
        rayleigh_test(torch.eye(3)[:1])
    with pytest.raises(SteradError, match="has length 2, but must lie on the unit sphere"):
        gine_test(2 * torch.eye(3))
    with pytest.raises(SteradError, match="NaN"):
        ajne_test(torch.full((3, 3), torch.nan))
