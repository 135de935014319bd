"""Fitted concentrations against mpmath at 50 digits, and coverage of confidence intervals.

test_references.py has those of the angular Gaussian and of the projected Student t.
"""

from typing import Any

import mpmath as mp
import pytest
import torch
from torch import Tensor

from sterad.sphere import (
    AngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphericalCauchy,
    VonMisesFisher,
    Watson,
)
from sterad.sphere.watson import solve_concentration
from tests.sphere import oracle

each_dimension = pytest.mark.parametrize("dimension", oracle.DIMENSIONS)


def draw(law: Any, dimension: int, kappa: float, count: int = 30) -> Tensor:
    pole = torch.eye(dimension, dtype=torch.float64)[0]
    generator = torch.Generator().manual_seed(dimension)
    points: Tensor = law(pole, kappa).sample(torch.Size([count]), generator=generator)
    return points


def cosines(points: Tensor, direction: Tensor) -> list[mp.mpf]:
    return [mp.mpf(t) for t in (points @ direction).clamp(-1, 1).tolist()]


@each_dimension
@pytest.mark.parametrize("length", [1e-3, 0.5, 0.99])
def test_von_mises_fisher(dimension: int, length: float) -> None:
    resultant = torch.zeros(dimension, dtype=torch.float64)
    resultant[0] = length
    found = VonMisesFisher.fit_resultant(resultant, torch.tensor(1.0)).law.concentration.item()
    with mp.workdps(oracle.DIGITS):
        order = mp.mpf(dimension) / 2 - 1

        def gap(k: mp.mpf) -> mp.mpf:
            return mp.besseli(order + 1, k) / mp.besseli(order, k) - mp.mpf(length)

        expected = float(mp.findroot(gap, (found * 0.999, found * 1.001), tol=1e-30))
    assert found == pytest.approx(expected, rel=1e-8)


@each_dimension
def test_power_spherical(dimension: int) -> None:
    points = draw(PowerSpherical, dimension, 2.0 * dimension)
    law = PowerSpherical.fit(points).law
    with mp.workdps(oracle.DIGITS):
        mean = mp.fsum(mp.log((1 + t) / 2) for t in cosines(points, law.mean_direction)) / 30
        p = mp.mpf(dimension - 1)
        k = law.concentration.item()
        root = mp.findroot(
            lambda k: mean - mp.digamma(k + p / 2) + mp.digamma(k + p), (k * 0.999, k * 1.001)
        )
    assert law.concentration.item() == pytest.approx(float(root), rel=1e-8)


@each_dimension
def test_spherical_cauchy(dimension: int) -> None:
    points = draw(SphericalCauchy, dimension, 2.0 * dimension)
    law = SphericalCauchy.fit(points).law
    with mp.workdps(oracle.DIGITS):
        p, values = mp.mpf(dimension - 1), cosines(points, law.mean_direction)

        def slope(k: mp.mpf) -> mp.mpf:
            return mp.fsum(1 / (1 + 2 * k / p) - (1 - t) / (1 + k * (1 - t) / p) for t in values)

        k = law.concentration.item()
        root = mp.findroot(slope, (k * 0.999, k * 1.001))
    assert law.concentration.item() == pytest.approx(float(root), rel=1e-8)


@each_dimension
@pytest.mark.parametrize("square", [0.1, 0.9])
def test_watson(dimension: int, square: float) -> None:
    """Weighted axes have a scatter matrix with their weights as eigenvalues."""
    if dimension * square < 1.5:
        square = 0.7
    others = (1 - square) / (dimension - 1)
    weights = torch.full((dimension,), others, dtype=torch.float64)
    weights[0] = square
    if dimension <= 128:
        axes = torch.eye(dimension, dtype=torch.float64)
        found = Watson.fit(axes, weights).law.concentration.item()
    else:  # the eigenvectors take seconds
        found = solve_concentration(weights[0], dimension).item()
    with mp.workdps(oracle.DIGITS):
        half = mp.mpf(dimension) / 2

        def gap(k: mp.mpf) -> mp.mpf:
            above = mp.hyp1f1(mp.mpf(3) / 2, half + 1, k) / (2 * half)
            return above / mp.hyp1f1(mp.mpf(1) / 2, half, k) - mp.mpf(square)

        root = float(mp.findroot(gap, (found * 0.999, found * 1.001), tol=1e-30))
    assert found == pytest.approx(root, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "dimension", "kappa", "count"),
    [
        (VonMisesFisher, 3, 5.0, 400),
        (VonMisesFisher, 16, 20.0, 1000),
        (VonMisesFisher, 128, 150.0, 1000),
        (PowerSpherical, 3, 8.0, 400),
        (PowerSpherical, 16, 40.0, 1000),
        (PowerSpherical, 128, 300.0, 1000),
        (SphericalCauchy, 3, 5.0, 400),
        (SphericalCauchy, 16, 30.0, 1000),
        (SphericalCauchy, 128, 200.0, 1000),
        (AngularGaussian, 3, 2.0, 200),
        (AngularGaussian, 16, 4.0, 300),
        (AngularGaussian, 128, 12.0, 400),
        (ProjectedStudentT, 3, 2.0, 100),
        (ProjectedStudentT, 16, 4.0, 100),
        (ProjectedStudentT, 128, 12.0, 100),
        (Watson, 3, 5.0, 400),
        (Watson, 16, -30.0, 1000),
        (Watson, 128, 150.0, 1000),
    ],
)
def test_coverage(law: Any, dimension: int, kappa: float, count: int) -> None:
    """200 fits have a binomial error of 1.5 %: outside 92 to 98 %, 2,000 other fits decide."""
    share = coverage(law, dimension, kappa, count, fits=200)
    if not 0.92 <= share <= 0.98:
        share = coverage(law, dimension, kappa, count, fits=2000)
    assert 0.92 <= share <= 0.98, share


def coverage(law: Any, dimension: int, kappa: float, count: int, fits: int) -> float:
    """Return the share of 95 % intervals that hold the concentration."""
    shape = {"df": 3.0} if law is ProjectedStudentT else {}
    true = law(torch.eye(dimension)[0], kappa, **shape)
    generator = torch.Generator().manual_seed(fits)
    covered = 0
    for _ in range(fits // 50):  # 200 fits of 1,000 points in 128 dimensions need 100 MB at once
        points = true.sample(torch.Size([50, count]), generator=generator)
        fit = law.fit(points, **shape)
        low, high = fit.confidence_interval(0.95)
        assert bool(fit.converged.all())
        covered += int(((low < kappa) & (kappa < high)).sum())
    return covered / fits
