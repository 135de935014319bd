"""log g and its slope against mpmath with 60 digits, and against published values."""

from functools import cache

import mpmath as mp
import pytest
import torch
from torch import Tensor

from sterad.sphere import AngularGaussian, equivalent_temperature, fast_log_kernel

DIMENSIONS = [2, 3, 4, 16, 128, 512, 2048, 4096]
SQUARES = ["0", "1e-6", "1e-3", "0.5", "1", "20", "100", "1e4"]
COSINES = ["-1", "-0.75", "-0.5", "-0.125", "0", "0.125", "0.5", "1"]
PUBLISHED_COSINES = ["-1", "-0.75", "-0.5", "-0.1", "0", "0.1", "0.5", "1"]

# (dimension, variance): log g at PUBLISHED_COSINES, computed with 150 digits.
PUBLISHED = {
    (512, 2.0): "-16.1179018338987 -12.1741387086233 -8.21494139827899 -1.84797020350472 -0.25 "
    "1.35046898161246 7.77741085186818 15.8677796594509",
    (512, 5.0): "-10.1645378793427 -7.65771976002675 -5.14470103856021 -1.11093527545589 -0.1 "
    "0.911934786698628 4.96968881977195 10.0644890059811",
    (512, 0.05): "-106.310459903315 -83.1159460732384 -59.3429437383244 -20.0645378793427 -10 "
    "0.164489005981127 41.8417233351561 96.3055960620032",
    (128, 2.0): "-8.11093977907017 -6.16866846050371 -4.21116953685878 -1.04719279622386 -0.25 "
    "0.549687894456695 3.77354700709245 7.86044984004786",
    (16, 0.5): "-6.10686061981756 -4.91271131967704 -3.66533769331289 -1.55203124053225 -1 "
    "-0.438129649710174 1.911330794468 5.09102107066261",
    (3, 1.0): "-1.89259977187559 -1.57935974143176 -1.24421985423432 -0.657333935780757 -0.5 "
    "-0.338130669801034 0.357714698929601 1.34789662189189",
}


def doubles(values: list[str]) -> Tensor:
    return torch.tensor([float(x) for x in values], dtype=torch.float64)


@cache
def exact(dimension: int, kappa: float, cosine: float) -> tuple[float, float]:
    """Return log g and its slope from Kummer's function."""
    with mp.workdps(60):
        k, gamma, half = mp.mpf(kappa), mp.mpf(kappa) * mp.mpf(cosine), mp.mpf(dimension) / 2
        first = mp.sqrt(2) * mp.gammaprod([half + 0.5], [half])
        below, above = moment(dimension, gamma), moment(dimension + 1, gamma)
        return float(mp.log(below) - k * k / 2), float(k * first * above / below)


def moment(dimension: int, gamma: mp.mpf) -> mp.mpf:
    """Return E[exp(γR)], R ~ chi, by Kummer's function, or by a recurrence where that cancels."""
    half, lost_nats = mp.mpf(dimension) / 2, 2 * abs(gamma) * mp.sqrt(dimension) + gamma**2 / 2
    if gamma < 0 and lost_nats > 500:
        return moment_by_recurrence(dimension, gamma)
    with mp.workdps(60 + (int(lost_nats / 2) if gamma < 0 else 0)):
        x, odd = gamma * gamma / 2, mp.sqrt(2) * gamma * mp.gammaprod([half + 0.5], [half])
        return mp.hyp1f1(half, 0.5, x) + odd * mp.hyp1f1(half + 0.5, 1.5, x)


def moment_by_recurrence(dimension: int, gamma: mp.mpf) -> mp.mpf:
    """Return the same for γ < 0 from I_1 = Φ(γ) and I_{k+1}/I_k = k/(I_{k+2}/I_{k+1} - γ)."""
    with mp.workdps(70):
        start = dimension + 500 + int(300 * mp.sqrt(dimension) / abs(gamma))
        ratio, log_product = mp.sqrt(start), mp.log(mp.ncdf(gamma))
        for k in range(start, 0, -1):
            ratio = k / (ratio - gamma)
            log_product += mp.log(ratio) if k < dimension else 0
        half = mp.mpf(dimension) / 2
        log_scale = gamma**2 / 2 + mp.log(2 * mp.pi) / 2 - (half - 1) * mp.log(2)
        return mp.exp(log_product + log_scale - mp.loggamma(half))


def test_series_and_recurrence_agree() -> None:
    with mp.workdps(60):
        gamma, spare = mp.mpf(-20), 400
        recurrence = moment_by_recurrence(64, gamma)
        with mp.workdps(60 + spare):
            odd = mp.sqrt(2) * gamma * mp.gammaprod([mp.mpf(65) / 2], [32])
            series = mp.hyp1f1(32, 0.5, 200) + odd * mp.hyp1f1(mp.mpf(65) / 2, 1.5, 200)
        assert abs(recurrence / series - 1) < mp.mpf(10) ** -50


def reference(dimension: int, kappa: float, cosines: Tensor) -> tuple[Tensor, Tensor]:
    pairs = [exact(dimension, kappa, t) for t in cosines.tolist()]
    value, slope = torch.tensor(pairs, dtype=torch.float64).unbind(1)
    return value, slope


def assert_within(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert found.isfinite().all()
    assert bool(((found - expected).abs() <= tolerance * expected.abs().clamp_min(1)).all())


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("square", SQUARES)
def test_log_density_and_slope(dimension: int, square: str) -> None:
    kappa = float(mp.sqrt(mp.mpf(square)))
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        cosine = doubles(COSINES).to(dtype).requires_grad_()
        pole = torch.eye(dimension, dtype=dtype)[0]
        law = AngularGaussian(pole, kappa)
        rounded = law.concentration.item()  # κ in float32
        for function in (law.log_kernel, fast_log_kernel(AngularGaussian, rounded, dimension)):
            value = function(cosine)
            (slope,) = torch.autograd.grad(value.sum(), cosine)
            expected, expected_slope = reference(dimension, rounded, cosine)
            assert value.dtype == dtype
            assert_within(value.double(), expected, tolerance)
            assert_within(slope.double(), expected_slope, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_log_density_on_a_finer_grid(dimension: int) -> None:
    cosines = torch.linspace(-1, 1, 41, dtype=torch.float64)
    for square in torch.logspace(-6, 4, 11).tolist():
        expected, _ = reference(dimension, square**0.5, cosines)
        law = AngularGaussian(torch.eye(dimension, dtype=torch.float64)[0], square**0.5)
        assert_within(law.log_kernel(cosines), expected, 1e-10)
        assert_within(
            fast_log_kernel(AngularGaussian, square**0.5, dimension)(cosines), expected, 1e-10
        )


@pytest.mark.parametrize(("dimension", "variance"), PUBLISHED)
def test_published_values(dimension: int, variance: float) -> None:
    expected = doubles(PUBLISHED[dimension, variance].split())
    kappa = AngularGaussian.concentration_of(variance)
    law = AngularGaussian(torch.eye(dimension, dtype=torch.float64)[0], kappa)
    found = law.log_kernel(doubles(PUBLISHED_COSINES))
    assert torch.allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_slope_in_the_concentration() -> None:
    kappa = torch.tensor([0.0, 1e-3, 1.0, 10.0, 100.0], dtype=torch.float64, requires_grad=True)
    pole = torch.eye(16, dtype=torch.float64)[0]
    value = AngularGaussian(pole, kappa).log_kernel(torch.tensor(-0.3, dtype=torch.float64))
    (slope,) = torch.autograd.grad(value.sum(), kappa)
    for k, found in zip(kappa.tolist(), slope.tolist(), strict=True):
        step = mp.mpf("1e-20")
        with mp.workdps(60):
            at, t = mp.mpf(k) + step, mp.mpf(-0.3)
            change = mp.log(moment(16, at * t) / moment(16, mp.mpf(k) * t)) / step
            expected = float(change - k)
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_mean_resultant_length() -> None:
    for dimension in (2, 3, 16, 512, 4096):
        for kappa in (1e-3, 1.0, 30.0, 1e3):
            half = mp.mpf(dimension) / 2
            with mp.workdps(40):
                scale = kappa / mp.sqrt(2) * mp.gammaprod([half + 0.5], [half + 1])
                expected = float(scale * mp.hyp1f1(0.5, half + 1, -(mp.mpf(kappa) ** 2) / 2))
            law = AngularGaussian(torch.eye(dimension, dtype=torch.float64)[0], kappa)
            assert law.mean_resultant_length.item() == pytest.approx(expected, rel=1e-11)


def test_equivalent_temperatures() -> None:
    variances = (0.05, 0.5, 1, 2, 3, 4, 5, 10)
    published = (101.1, 31.98, 22.62, 15.99, 13.06, 11.31, 10.11, 7.15)
    for variance, expected in zip(variances, published, strict=True):
        found = equivalent_temperature(variance, 512)
        assert found == pytest.approx(expected, abs=0.05 if expected > 100 else 0.005)


def test_against_projnormal() -> None:
    reason = "projnormal, a second reference besides mpmath, is not installed"
    projnormal = pytest.importorskip("projnormal.formulas.projected_normal", reason=reason)
    law = AngularGaussian(torch.eye(4, dtype=torch.float64)[0], 1.5)
    points = law.sample(torch.Size([20]), generator=torch.Generator().manual_seed(0))
    expected = projnormal.log_pdf(
        mean_x=1.5 * law.mean_direction, covariance_x=torch.eye(4, dtype=torch.float64), y=points
    )
    assert torch.allclose(law.log_prob(points), expected, rtol=1e-6)
