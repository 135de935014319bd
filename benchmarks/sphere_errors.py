"""Largest errors of log-densities against mpmath, for the tables of docs/laws.

python benchmarks/sphere_errors.py [ROW ...]

An error is |found - exact| / max(1, |exact|) of log g, the log-density relative to the uniform law,
over cosines and concentrations. The references are those of the tests, with 50 digits or more.
"""

import math
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import mpmath as mp
import scipy.stats
import torch
from implementations.bessel_vmf import BesselVonMisesFisher

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sterad.sphere import (
    AngularCentralGaussian,
    AngularGaussian,
    GeneralAngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphericalCauchy,
    VonMisesFisher,
    Watson,
    log_area,
)
from tests.sphere import test_angular_gaussian, test_projected_student_t, test_von_mises_fisher

DIMENSIONS = (2, 3, 5, 16, 128, 512, 2048, 4096)
COSINES = (-0.75, 0.5, 1.0)
Density = Callable[[int, float, float], float]
"""A function of dimension, concentration and cosine."""


def double(value: float) -> torch.Tensor:
    """Return a number as a float64 tensor."""
    return torch.tensor(value, dtype=torch.float64)


def exact_vmf(d: int, kappa: float, cosine: float) -> float:
    """Return κt minus the exact log normalizer."""
    return kappa * cosine - test_von_mises_fisher.exact(d, kappa)[0]


def scipy_vmf(d: int, kappa: float, cosine: float) -> float:
    """Return the density of SciPy relative to the uniform law."""
    mean, point = torch.eye(d, dtype=torch.float64)[:2].numpy()
    point = cosine * mean + math.sqrt(1 - cosine**2) * point
    return float(scipy.stats.vonmises_fisher(mean, kappa).logpdf(point)) + log_area(d)


def bessel_vmf(d: int, kappa: float, cosine: float) -> float:
    """Return the same from Bessel functions in torch."""
    law = BesselVonMisesFisher(torch.eye(d, dtype=torch.float64)[0], kappa)
    return kappa * cosine + law.log_normalizer() + log_area(d)


def series_agd(d: int, kappa: float, cosine: float) -> float:
    """Return the angular Gaussian by Saw's series in float64."""
    n = torch.arange(1000, dtype=torch.float64)
    base = math.sqrt(2) * kappa * cosine
    logs = torch.lgamma((d + n) / 2) - math.lgamma(d / 2) - torch.lgamma(n + 1)
    terms = torch.exp(logs + n * math.log(abs(base)) - kappa**2 / 2) * math.copysign(1, base) ** n
    total = float(terms.sum())
    return math.log(total) if total > 0 else math.nan


def exact_power(d: int, kappa: float, cosine: float) -> float:
    """Return the log-density from log-gamma functions."""
    with mp.workdps(50):
        half, k = mp.mpf(d - 1) / 2, mp.mpf(kappa)
        mean = mp.loggamma(half + k) + mp.loggamma(2 * half)
        mean -= mp.loggamma(half) + mp.loggamma(2 * half + k)
        return float(k * mp.log((1 + mp.mpf(cosine)) / 2) - mean)


def exact_cauchy(d: int, kappa: float, cosine: float) -> float:
    """Return the log-density in closed form."""
    with mp.workdps(50):
        p, k = mp.mpf(d - 1), mp.mpf(kappa)
        return float(p * (mp.log1p(2 * k / p) / 2 - mp.log1p(k * (1 - mp.mpf(cosine)) / p)))


def exact_watson(d: int, kappa: float, cosine: float) -> float:
    """Return κt² minus the log of Kummer's function."""
    with mp.workdps(60):
        k, half = mp.mpf(kappa), mp.mpf(d) / 2
        # Kummer's transformation for κ < 0, whose own series cancels.
        if kappa < 0:
            value = k + mp.log(mp.hyp1f1(half - 0.5, half, -k))
        else:
            value = mp.log(mp.hyp1f1(0.5, half, k))
        return float(k * mp.mpf(cosine) ** 2 - value)


ROOTS = (0.5, 1.0, 2.0)
"""Standard deviations of the coordinates of Gaussian vectors, by turns."""


def plane_point(d: int, cosine: float) -> torch.Tensor:
    """Return the point with this cosine with the first axis, in the plane of the first two."""
    return torch.nn.functional.pad(
        torch.stack([double(cosine), double(1 - cosine**2).sqrt()]), (0, d - 2)
    )


def roots(d: int) -> torch.Tensor:
    """Return the standard deviations of d coordinates."""
    return torch.tensor(ROOTS, dtype=torch.float64).repeat(d // 3 + 1)[:d]


def general(d: int, kappa: float, cosine: float) -> float:
    """Return the log-density of GeneralAngularGaussian with mean κ times the first axis."""
    mean = kappa * torch.eye(1, d, dtype=torch.float64)[0]
    law = GeneralAngularGaussian(mean, scale_tril=torch.diag(roots(d)))
    return float(law.log_prob(plane_point(d, cosine))) + log_area(d)


@cache
def central_law(d: int) -> AngularCentralGaussian:
    """Return the law; its Cholesky factor takes seconds in 4,096 dimensions."""
    return AngularCentralGaussian(torch.diag(roots(d).square()))


def central(d: int, kappa: float, cosine: float) -> float:
    """Return the log-density of AngularCentralGaussian, which has no concentration."""
    law = central_law(d)
    return float(law.log_prob(plane_point(d, cosine))) + log_area(d)


def exact_general(d: int, kappa: float, cosine: float) -> float:
    """Return the log-density from Kummer's function."""
    with mp.workdps(60):
        first, second, k, t = (mp.mpf(x) for x in (*ROOTS[:2], kappa, cosine))
        a = (t / first) ** 2 + (1 - t * t) / second**2
        gamma = k * t / first**2 / mp.sqrt(a)
        volume = mp.fsum(mp.log(x) for x in roots(d).tolist())
        radial = mp.log(test_angular_gaussian.moment(d, gamma)) - (k / first) ** 2 / 2
        return float(radial - mp.mpf(d) / 2 * mp.log(a) - volume)


def exact_central(d: int, kappa: float, cosine: float) -> float:
    """Return the log-density in closed form."""
    return exact_general(d, 0.0, cosine)


def kernel_of(law: type, **shape: float) -> Density:
    """Return the log-density of a law of the package."""

    def density(d: int, kappa: float, cosine: float) -> float:
        made = law(torch.eye(d, dtype=torch.float64)[0], kappa, **shape)
        return float(made.log_kernel(double(cosine)))

    return density


def largest_error(
    found: Density, exact: Density, d: int, kappas: tuple[float, ...], cosines: tuple[float, ...]
) -> float:
    """Return the largest error; infinite where a value is NaN or infinite."""
    errors = []
    for kappa in kappas:
        for cosine in cosines:
            expected = exact(d, kappa, cosine)
            value = found(d, kappa, cosine)
            error = abs(value - expected) / max(1.0, abs(expected))
            errors.append(error if math.isfinite(error) else math.inf)
    return max(errors)


def main() -> None:
    """Print a row for each law and implementation."""
    axial = (-1000.0, -10.0, -1.0, 1.0, 10.0, 1000.0)
    wide, squares, student = (1e-3, 1.0, 10.0, 100.0, 1e4), (0.1, 1.0, 10.0), (0.5, 5.0, 30.0)
    student_exact: Density = lambda d, kappa, t: test_projected_student_t.exact(t, kappa, 3.0, d)  # noqa: E731
    angular_exact: Density = lambda d, kappa, t: test_angular_gaussian.exact(d, kappa, t)[0]  # noqa: E731
    rows: list[tuple[str, Density, Density, tuple[float, ...], tuple[float, ...]]] = [
        ("VonMisesFisher", kernel_of(VonMisesFisher), exact_vmf, wide, COSINES),
        ("von Mises-Fisher, SciPy", scipy_vmf, exact_vmf, wide, COSINES),
        ("von Mises-Fisher, torch with Bessel functions", bessel_vmf, exact_vmf, wide, COSINES),
        ("AngularGaussian", kernel_of(AngularGaussian), angular_exact, squares, COSINES),
        ("angular Gaussian, series in float64", series_agd, angular_exact, squares, COSINES),
        ("PowerSpherical", kernel_of(PowerSpherical), exact_power, wide, COSINES),
        ("SphericalCauchy", kernel_of(SphericalCauchy), exact_cauchy, wide, COSINES),
        (
            "ProjectedStudentT",
            kernel_of(ProjectedStudentT, df=3.0),
            student_exact,
            student,
            (0.0, 0.6, 1.0),
        ),
    ]
    rows += [
        ("Watson", kernel_of(Watson), exact_watson, axial, COSINES),
        ("GeneralAngularGaussian", general, exact_general, squares, COSINES),
        ("AngularCentralGaussian", central, exact_central, (0.0,), COSINES),
    ]
    rows = [row for row in rows if row[0] in (sys.argv[1:] or [row[0]])]
    print("| | " + " | ".join(f"d = {d}" for d in DIMENSIONS) + " |")
    print("|---" * (len(DIMENSIONS) + 1) + "|")
    for name, found, exact, kappas, cosines in rows:
        cells = [f"{largest_error(found, exact, d, kappas, cosines):.0e}" for d in DIMENSIONS]
        cells = ["fails" if cell == "inf" else cell for cell in cells]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
