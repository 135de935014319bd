"""Laws on the sphere with mpmath at 50 digits: slow, written from the formulas alone."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import mpmath as mp
import numpy as np

DIGITS = 50
DIMENSIONS = [2, 3, 5, 16, 128, 512, 2048, 4096]
DF = 2.5
"""Degrees of freedom of the projected Student t."""
AXIS_VARIANCE, OTHER_VARIANCE = 2.0, 0.625
"""Of the general angular Gaussian."""

Kernel = Callable[[mp.mpf], mp.mpf]
Nodes = list[tuple[mp.mpf, mp.mpf]]
"""Pairs of a node and its weight."""


def von_mises_fisher(kappa: float, dimension: int) -> Kernel:
    k, order = mp.mpf(kappa), mp.mpf(dimension) / 2 - 1
    log_mgf = mp.loggamma(order + 1) + order * mp.log(2 / k) + mp.log(mp.besseli(order, k))
    return lambda t: k * t - log_mgf


def power_spherical(kappa: float, dimension: int) -> Kernel:
    k, p = mp.mpf(kappa), mp.mpf(dimension - 1)
    log_mean = mp.loggamma(k + p / 2) - mp.loggamma(p / 2) - mp.loggamma(k + p) + mp.loggamma(p)
    return lambda t: k * mp.log((1 + t) / 2) - log_mean


def spherical_cauchy(kappa: float, dimension: int) -> Kernel:
    p = mp.mpf(dimension - 1)
    rate = mp.mpf(kappa) / p
    return lambda t: p * (mp.log(1 + 2 * rate) / 2 - mp.log(1 + rate * (1 - t)))


def watson(kappa: float, dimension: int) -> Kernel:
    k = mp.mpf(kappa)
    log_mean = mp.log(mp.hyp1f1(mp.mpf(1) / 2, mp.mpf(dimension) / 2, k))
    return lambda t: k * t * t - log_mean


def chi_mgf(gamma: mp.mpf, dimension: int) -> mp.mpf:
    """Return E[exp(γR)], R ~ chi, by Kummer's function."""
    half = mp.mpf(dimension) / 2
    # The two terms cancel for negative cosines.
    lost = int(abs(gamma) * mp.sqrt(dimension) + gamma**2 / 2) if gamma < 0 else 0
    with mp.workdps(mp.mp.dps + lost):
        x = gamma * gamma / 2
        odd = mp.sqrt(2) * gamma * mp.gammaprod([half + 0.5], [half])
        return mp.hyp1f1(half, 0.5, x) + odd * mp.hyp1f1(half + 0.5, 1.5, x)


def angular_gaussian(kappa: float, dimension: int) -> Kernel:
    k = mp.mpf(kappa)
    return lambda t: mp.log(chi_mgf(k * t, dimension)) - k * k / 2


def projected_student_t(kappa: float, dimension: int, df: float = DF) -> Kernel:
    """Return log g from ∫ r^(d-1) (1 + r² - 2br)^(-(ν+d)/2) dr relative to b = 0.

    The integral is in proportion to 2F1(d, ν; (d+ν+1)/2; (1+b)/2), whose terms are all positive.
    """
    k, nu, d = mp.mpf(kappa), mp.mpf(df), mp.mpf(dimension)
    scale = k / mp.sqrt(nu + k * k)

    def radial(b: mp.mpf) -> mp.mpf:
        return mp.hyp2f1(d, nu, (d + nu + 1) / 2, (1 + b) / 2, maxterms=10**6)

    constant = mp.log(radial(mp.mpf(0))) + nu / 2 * mp.log1p(k * k / nu)
    return lambda t: mp.log(radial(scale * t)) - constant


def general_angular_gaussian(length: float, dimension: int) -> Kernel:
    """Return log g of X/|X| for a mean of this length along the axis, with unequal variances.

    The variance is AXIS_VARIANCE along the axis and OTHER_VARIANCE in all other directions, so that
    the law is symmetric about the axis.
    """
    m, b, a = mp.mpf(length), mp.mpf(AXIS_VARIANCE), mp.mpf(OTHER_VARIANCE)
    half = mp.mpf(dimension) / 2
    constant = -(mp.log(b) + (dimension - 1) * mp.log(a)) / 2 - m * m / (2 * b)

    def log_kernel(t: mp.mpf) -> mp.mpf:
        square = t * t / b + (1 - t * t) / a
        gamma = t * m / (b * mp.sqrt(square))
        return constant - half * mp.log(square) + mp.log(chi_mgf(gamma, dimension))

    return log_kernel


def angular_central_gaussian(variance: float, dimension: int) -> Kernel:
    """Return log g of X/|X| for a zero mean, this variance along the axis and 1 across."""
    b, half = mp.mpf(variance), mp.mpf(dimension) / 2
    return lambda t: -mp.log(b) / 2 - half * mp.log(t * t / b + 1 - t * t)


KERNELS = {
    "VonMisesFisher": von_mises_fisher,
    "PowerSpherical": power_spherical,
    "SphericalCauchy": spherical_cauchy,
    "Watson": watson,
    "AngularGaussian": angular_gaussian,
    "ProjectedStudentT": projected_student_t,
}
COVARIANCE_KERNELS = {
    "GeneralAngularGaussian": general_angular_gaussian,
    "AngularCentralGaussian": angular_central_gaussian,
}
"""Laws with a covariance that is symmetric about their axis; the package does not know that."""
ALL_KERNELS = KERNELS | COVARIANCE_KERNELS


@cache
def gauss_rule(count: int, power: float, digits: int = DIGITS) -> Nodes:
    """Return Gauss's nodes on [-1, 1] for the weight (1 - z²)^power, of total weight 1."""
    with mp.workdps(digits + 10):
        a = mp.mpf(power)
        squares = [n * (n + 2 * a) / (4 * (n + a) ** 2 - 1) for n in range(2, count + 1)]
        bands = [mp.sqrt(x) for x in [1 / (3 + 2 * a), *squares]]
        off = np.array([float(x) for x in bands[:-1]])
        starts = np.linalg.eigvalsh(np.diag(off, 1) + np.diag(off, -1))
        nodes = []
        for start in starts:
            z = mp.mpf(float(start))
            for _ in range(4):  # Newton's steps double the digits from 14 on
                value, slope, norm = _orthonormal(z, bands)
                z -= value / slope
            nodes.append((z, 1 / norm))
        return nodes


def _orthonormal(z: mp.mpf, bands: list[mp.mpf]) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """Return the last orthonormal polynomial, its slope, and the sum of squares of the others."""
    before, value, slope_before, slope, norm = mp.mpf(0), mp.mpf(1), mp.mpf(0), mp.mpf(0), mp.mpf(0)
    band_before = mp.mpf(0)
    for band in bands:
        norm += value * value
        following = (z * value - band_before * before) / band
        slope_following = (value + z * slope - band_before * slope_before) / band
        before, value, slope_before, slope = value, following, slope, slope_following
        band_before = band
    return value, slope, norm


def log_density(log_kernel: Kernel, dimension: int) -> Kernel:
    """Return the log-density of s = artanh(t)."""
    p = mp.mpf(dimension - 1)
    log_area = mp.log(mp.beta(mp.mpf(1) / 2, p / 2))
    # 1 - tanh s, exact in both tails, keeps log(1 + t) finite.
    return lambda s: log_kernel(mp.tanh(s)) - p * mp.log(mp.cosh(s)) - log_area


def mass_interval(log_h: Kernel) -> tuple[mp.mpf, ...]:
    """Return the ends of s where the density is exp(-60), exp(-8), exp(-8), exp(-60) of its top."""
    with mp.workdps(20):
        grid = [mp.sinh(mp.mpf(i) / 8) / 100 for i in range(-76, 77)]
        heights = [log_h(s) for s in grid]
        found = []
        for nats in (60, 8):
            inside = [i for i, height in enumerate(heights) if height > max(heights) - nats]
            found.append((grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, 152)]))
    return found[0][0], found[1][0], found[1][1], found[0][1]


def stretch(log_h: Kernel) -> tuple[Kernel, Kernel, mp.mpf, mp.mpf]:
    """Return s(x), its slope, and the ends in x of all mass: even in the middle, wide in tails."""
    low, first, last, high = mass_interval(log_h)
    center, scale = (first + last) / 2, (last - first) / 4
    ends = mp.asinh((low - center) / scale), mp.asinh((high - center) / scale)
    return lambda x: center + scale * mp.sinh(x), lambda x: scale * mp.cosh(x), *ends


def panels(ends: list[mp.mpf], count: int) -> Nodes:
    """Return Gauss-Legendre nodes on the pieces between the ends."""
    rule = gauss_rule(count, 0.0)
    return [
        ((low + high) / 2 + (high - low) / 2 * z, (high - low) * w)
        for low, high in pairwise(ends)
        for z, w in rule
    ]


def moments(
    name: str, kappa: float, dimension: int, cosines: list[float], count: int = 24
) -> tuple[mp.mpf, list[tuple[mp.mpf, mp.mpf]]]:
    """Return the entropy with respect to area, and the probabilities below and above cosines."""
    with mp.workdps(DIGITS + 20):
        kernel = ALL_KERNELS[name](kappa, dimension)
        log_h = log_density(kernel, dimension)
        at, _, low, high = stretch(log_h)
        places = [mp.atanh(mp.mpf(t)) for t in cosines]
        ends = sorted([at(low + (high - low) * i / 32) for i in range(33)] + places)
        p, log_beta = dimension - 1, mp.log(mp.beta(mp.mpf(1) / 2, mp.mpf(dimension - 1) / 2))
        pieces = []
        for s, weight in panels(ends, count):
            value = kernel(mp.tanh(s))
            mass = weight * mp.exp(value - p * mp.log(mp.cosh(s)) - log_beta)
            pieces.append((s, mass, mass * value))
        tails = [
            (mp.fsum(m for s, m, _ in pieces if s < x), mp.fsum(m for s, m, _ in pieces if s > x))
            for x in places
        ]
        half = mp.mpf(dimension) / 2
        area = mp.log(2) + half * mp.log(mp.pi) - mp.loggamma(half)
        return area - mp.fsum(x for *_, x in pieces), tails


def divergence(
    first: tuple[str, float],
    second: tuple[str, float],
    dimension: int,
    cosine: str,
    count: int = 28,
) -> mp.mpf:
    """Return KL between two laws whose mean directions have this cosine, by a double integral.

    The outer axis is that of the first law. For PowerSpherical as the second it is that of the
    second, whose logarithmic singularity is then at the end of the outer integral; in many
    dimensions the first law has no mass near it.
    """
    with mp.workdps(DIGITS + 20):
        p, q = (ALL_KERNELS[name](kappa, dimension) for name, kappa in (first, second))
        c = mp.mpf(cosine)
        sine = mp.sqrt(1 - c * c)
        inner: Nodes = [(mp.mpf(-1), mp.mpf(1) / 2), (mp.mpf(1), mp.mpf(1) / 2)]
        if dimension > 2:
            inner = gauss_rule(count, (dimension - 4) / 2)

        def average(function: Kernel, t: mp.mpf) -> mp.mpf:
            across = mp.sqrt(1 - t * t) * sine
            return mp.fsum(w * function(t * c + across * z) for z, w in inner)

        own = _outer(p, dimension, count)
        entropy_term = mp.fsum(w * p(t) for t, w in own)
        if second[0] != "PowerSpherical" or dimension > 16:
            return entropy_term - mp.fsum(w * average(q, t) for t, w in own)
        marginal = _outer(lambda t: mp.log(average(lambda x: mp.exp(p(x)), t)), dimension, count)
        return entropy_term - mp.fsum(w * q(t) for t, w in marginal)


def _outer(log_kernel: Kernel, dimension: int, count: int) -> Nodes:
    """Return cosines and their probabilities, by the trapezoidal rule in a stretched artanh(t)."""
    log_h = log_density(log_kernel, dimension)
    at, slope, low, high = stretch(log_h)
    steps = count * (16 if dimension <= 5 else 4)
    step = (high - low) / steps
    order = [low + step * i for i in range(steps + 1)]
    return [(mp.tanh(at(x)), step * slope(x) * mp.exp(log_h(at(x)))) for x in order]


def angular_gaussian_score(kappa: mp.mpf, cosine: mp.mpf, dimension: int) -> mp.mpf:
    """Return ∂ log g/∂κ: t E[R exp(κtR)]/E[exp(κtR)] - κ."""
    half, gamma = mp.mpf(dimension) / 2, kappa * cosine
    first = mp.sqrt(2) * mp.gammaprod([half + 0.5], [half])
    return cosine * first * chi_mgf(gamma, dimension + 1) / chi_mgf(gamma, dimension) - kappa


def student_score(kappa: mp.mpf, cosine: mp.mpf, dimension: int) -> mp.mpf:
    """Return ∂ log g/∂κ by a central difference."""
    step = mp.mpf(10) ** -18
    up, down = (projected_student_t(k, dimension)(cosine) for k in (kappa + step, kappa - step))
    return (up - down) / (2 * step)


SCORES = {"AngularGaussian": angular_gaussian_score, "ProjectedStudentT": student_score}


def concentration(name: str, dimension: int, cosines: list[str], start: float) -> mp.mpf:
    """Return the concentration of maximum likelihood for points with these cosines."""
    with mp.workdps(DIGITS):
        values = [mp.mpf(t) for t in cosines]

        def slope(k: mp.mpf) -> mp.mpf:
            return mp.fsum(SCORES[name](k, t, dimension) for t in values)

        return mp.findroot(slope, (start * 0.999, start * 1.001), tol=1e-28)
