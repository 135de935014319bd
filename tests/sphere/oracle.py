"""Laws on the sphere with mpmath at 50 digits: slow, written from the formulas alone."""

from collections.abc import Callable

import mpmath as mp

DIGITS = 50
DIMENSIONS = [2, 3, 5, 16, 128, 512, 2048, 4096]

Kernel = Callable[[mp.mpf], mp.mpf]


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


def angular_gaussian(kappa: float, dimension: int) -> Kernel:
    k, half = mp.mpf(kappa), mp.mpf(dimension) / 2

    def log_kernel(t: mp.mpf) -> mp.mpf:
        gamma = k * t
        x, odd = gamma * gamma / 2, mp.sqrt(2) * gamma * mp.gammaprod([half + 0.5], [half])
        # The two terms cancel for negative cosines.
        with mp.workdps(mp.mp.dps + int(abs(gamma) * mp.sqrt(dimension))):
            value = mp.hyp1f1(half, 0.5, x) + odd * mp.hyp1f1(half + 0.5, 1.5, x)
        return mp.log(value) - k * k / 2

    return log_kernel


KERNELS = {
    "VonMisesFisher": von_mises_fisher,
    "PowerSpherical": power_spherical,
    "SphericalCauchy": spherical_cauchy,
    "Watson": watson,
    "AngularGaussian": angular_gaussian,
}


def log_density(log_kernel: Kernel, dimension: int) -> Callable[[mp.mpf], mp.mpf]:
    """Return the log-density of s = artanh(t)."""
    p = mp.mpf(dimension - 1)
    log_area = mp.log(mp.beta(mp.mpf(1) / 2, p / 2))

    def at(s: mp.mpf) -> mp.mpf:
        # 1 - tanh s, exact in both tails, keeps log(1 + t) finite.
        return log_kernel(mp.tanh(s)) - p * mp.log(mp.cosh(s)) - log_area

    return at


def breaks(log_h: Callable[[mp.mpf], mp.mpf], nats: float = 130.0) -> list[mp.mpf]:
    """Return the ends of pieces of s that hold all mass but exp(-nats)."""
    with mp.workdps(20):
        grid = [mp.sinh(mp.mpf(i) / 12) / 100 for i in range(-108, 109)]
        heights = [log_h(s) for s in grid]
        top = max(heights)
        inside = [i for i, height in enumerate(heights) if height > top - nats]
        low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, len(grid) - 1)]
    count = 12
    return [low + (high - low) * i / count for i in range(count + 1)]


def integral(
    function: Callable[[mp.mpf], mp.mpf], points: list[mp.mpf], low: mp.mpf, high: mp.mpf
) -> mp.mpf:
    """Return the integral over [low, high], in pieces."""
    inside = [low, *(x for x in points if low < x < high), high]
    return mp.quad(function, inside, method="gauss-legendre")


def cdf(name: str, kappa: float, dimension: int, cosine: float) -> tuple[float, float]:
    """Return the probabilities of a smaller and of a larger cosine."""
    with mp.workdps(DIGITS):
        log_h = log_density(KERNELS[name](kappa, dimension), dimension)
        points, s = breaks(log_h), mp.atanh(mp.mpf(cosine))
        below = integral(lambda x: mp.exp(log_h(x)), points, min(points[0], s - 1), s)
        above = integral(lambda x: mp.exp(log_h(x)), points, s, max(points[-1], s + 1))
        return float(below), float(above)


def entropy(name: str, kappa: float, dimension: int) -> float:
    """Return the entropy with respect to area."""
    with mp.workdps(DIGITS):
        kernel = KERNELS[name](kappa, dimension)
        log_h = log_density(kernel, dimension)
        points = breaks(log_h)
        mean = integral(
            lambda s: mp.exp(log_h(s)) * kernel(mp.tanh(s)), points, points[0], points[-1]
        )
        half = mp.mpf(dimension) / 2
        return float(mp.log(2) + half * mp.log(mp.pi) - mp.loggamma(half) - mean)


def divergence(
    first: tuple[str, float], second: tuple[str, float], dimension: int, cosine: float
) -> float:
    """Return KL between two laws whose mean directions have this cosine, by a double integral."""
    with mp.workdps(20):
        kernel, other = (KERNELS[name](kappa, dimension) for name, kappa in (first, second))
        log_h, c = log_density(kernel, dimension), mp.mpf(cosine)
        sine = mp.sqrt(1 - c * c)
        # For small d the angle, in which z = cos φ, is bounded.
        points = sorted([*breaks(log_h, 60.0), mp.atanh(c), mp.atanh(-c)])
        q = mp.mpf(max(dimension - 3, 0))
        # sin^q φ is negligible outside ±reach about π/2.
        reach = min(mp.pi / 2, mp.sqrt(130 / (q + 1)))
        angles = [mp.pi / 2 + reach * i / 2 for i in range(-2, 3)]
        mass = mp.quad(lambda a: mp.sin(a) ** q, angles, method="gauss-legendre")

        def average(t: mp.mpf) -> mp.mpf:
            across = mp.sqrt(1 - t * t) * sine
            if dimension == 2:
                lowest = mp.mpf(10) ** -24 - 1  # rounding must not make 1 + t negative
                return (other(max(t * c - across, lowest)) + other(t * c + across)) / 2
            value = mp.quad(
                lambda a: mp.sin(a) ** q * other(t * c + across * mp.cos(a)),
                angles,
                method="gauss-legendre",
            )
            return value / mass

        def ratio(s: mp.mpf) -> mp.mpf:
            t = mp.tanh(s)
            return mp.exp(log_h(s)) * (kernel(t) - average(t))

        # On the circle log g may have singularities at ±c: tanh-sinh converges there.
        method = "tanh-sinh" if dimension == 2 else "gauss-legendre"
        return float(mp.quad(ratio, points, method=method))
