"""Tests of a law against points, and of two laws against each other."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.fit import Fit
from sterad.sphere.rotational_law import RotationalLaw
from sterad.sphere.uniformity import HypothesisResult, chi_squared_tail, read_points

MAX_EXACT_POINTS = 2000
"""Number of points up to which the distribution of Kolmogorov's statistic is computed exactly."""


def kolmogorov_smirnov_test(
    points: Any,
    law: RotationalLaw,
    resamples: int = 0,
    generator: torch.Generator | None = None,
) -> HypothesisResult:
    """Test whether the cosines with the law's mean direction have the law's distribution.

    points: (n, d) unit rows; law: without batch dimensions. The statistic is the largest distance
    between the distribution functions. With resamples=0 the law must be known beforehand. For a law
    that was fitted to these points that p-value is far too large: give resamples (999, say), the
    number of samples that are drawn from the law and fitted in the same way.

    >>> from sterad.sphere import VonMisesFisher
    >>> law = VonMisesFisher(torch.eye(3, dtype=torch.float64)[0], 10.0)
    >>> points = law.sample((100,), generator=torch.Generator().manual_seed(0))
    >>> bool(kolmogorov_smirnov_test(points, law).p_value > 0.05)
    True
    """
    rows = read_points(points, least=1)
    _require_one_law(rows, law)
    statistic = _cosine_distance(rows, law)
    if resamples == 0:
        p_value = kolmogorov_tail(float(statistic), len(rows))
        return HypothesisResult(statistic, statistic.new_tensor(p_value))
    if resamples < 1:
        raise SteradError(f"resamples is {resamples}: give 0 for a known law, otherwise 99 or more")
    exceeding = 0
    shape = {name: float(getattr(law, name)) for name in _fixed_parameters(law)}
    # A few batches bound the memory.
    size = max(1, min(resamples, 2**22 // rows.numel()))
    for first in range(0, resamples, size):
        count = min(size, resamples - first)
        drawn = law.sample((count, len(rows)), generator=generator)
        refitted = type(law).fit(drawn, **shape).law
        exceeding += int((_cosine_distance(drawn, refitted) >= statistic).sum())
    return HypothesisResult(statistic, statistic.new_tensor((1 + exceeding) / (1 + resamples)))


def likelihood_ratio_test(restricted: Fit[Any], full: Fit[Any]) -> HypothesisResult:
    """Test a law that is a special case of another, both fitted to the same points.

    2 (log L - log L₀) has a χ² distribution for large n, with the difference of the numbers of
    parameters as degrees of freedom: the uniform law in any other, von Mises-Fisher in Kent's, the
    angular Gaussian in the one with any covariance. For laws of which neither is a special case of
    the other, see `vuong_test`.

    >>> from sterad.sphere import Uniform, VonMisesFisher
    >>> law = VonMisesFisher(torch.eye(3)[0], 2.0)
    >>> points = law.sample((100,), generator=torch.Generator().manual_seed(0))
    >>> bool(likelihood_ratio_test(Uniform.fit(points), VonMisesFisher.fit(points)).p_value < 1e-6)
    True
    """
    df = full.n_parameters - restricted.n_parameters
    if df < 1:
        raise SteradError(
            f"the restricted law has {restricted.n_parameters} parameters and the full one "
            f"{full.n_parameters}: give the law with fewer parameters first"
        )
    if not bool(torch.isclose(full.count.double(), restricted.count.double()).all()):
        raise SteradError(
            "the two fits have different numbers of points: fit both laws to the same points"
        )
    statistic = 2 * (full.log_likelihood.double() - restricted.log_likelihood.double())
    return HypothesisResult(statistic, chi_squared_tail(statistic, df))


def vuong_test(points: Any, first: Fit[Any], second: Fit[Any]) -> HypothesisResult:
    """Test whether two laws that are not special cases of each other are equally near the truth.

    points: (n, d) unit rows that both were fitted to. The statistic is standard normal for large n
    if they are; it is positive where the first law is nearer. The difference of the log-likelihoods
    is corrected by that of the numbers of parameters times log(n)/2, as in BIC. Q. H. Vuong,
    "Likelihood Ratio Tests for Model Selection and Non-Nested Hypotheses", Econometrica 57(2),
    1989, https://doi.org/10.2307/1912557.
    """
    rows = read_points(points)
    n = len(rows)
    gaps = (first.law.log_prob(rows) - second.law.log_prob(rows)).double()
    if gaps.dim() != 1:
        raise SteradError(
            f"the laws have batch shape {tuple(gaps.shape[1:])}: compare one law with one law"
        )
    spread = float(gaps.std(correction=0))
    if not spread > 1e-12 * max(1.0, float(gaps.abs().max())):
        raise SteradError(
            "both laws have the same density at all points: the test cannot tell them apart"
        )
    excess = gaps.sum() - (first.n_parameters - second.n_parameters) * math.log(n) / 2
    statistic = excess / (math.sqrt(n) * spread)
    return HypothesisResult(statistic, torch.special.erfc(statistic.abs() / math.sqrt(2)))


def kolmogorov_tail(distance: float, n: int) -> float:
    """Return the probability that Kolmogorov's distance of n points is at least `distance`.

    Exactly for few points: G. Marsaglia, W. W. Tsang and J. Wang, "Evaluating Kolmogorov's
    Distribution", Journal of Statistical Software 8(18), 2003. Otherwise by the limiting series,
    good to 0.2 % of the probability.

    >>> round(kolmogorov_tail(0.274, 10), 4)
    0.3715
    """
    if n > MAX_EXACT_POINTS:
        # The shift removes the error of the order 1/√n: J. Vrbik, "Small-Sample Corrections to
        # Kolmogorov-Smirnov Test Statistic", 2018.
        z = math.sqrt(n) * distance
        z = z + 1 / (6 * math.sqrt(n)) + (z - 1) / (4 * n)
        terms = [(-1) ** (k - 1) * math.exp(-2 * k * k * z * z) for k in range(1, 101)]
        return min(1.0, max(0.0, 2 * sum(terms))) if z > 0.2 else 1.0
    if distance * n <= 0.5:
        return 1.0
    if distance >= 1:
        return 0.0
    return min(1.0, max(0.0, 1 - _kolmogorov_cdf(distance, n)))


def _kolmogorov_cdf(distance: float, n: int) -> float:
    """Return n!/nⁿ times an entry of the n-th power of Marsaglia's matrix."""
    k = int(n * distance) + 1
    m, h = 2 * k - 1, k - n * distance
    rows, columns = np.indices((m, m))
    matrix = (rows - columns + 1 >= 0).astype(np.float64)
    powers = h ** np.arange(1, m + 1)
    matrix[:, 0] -= powers
    matrix[-1, :] -= powers[::-1]
    matrix[-1, 0] += max(0.0, 2 * h - 1) ** m
    steps = np.maximum(rows - columns + 1, 0)
    matrix *= np.exp([-math.lgamma(i + 1) for i in range(m + 1)])[steps]
    power, log_scale = _scaled_power(matrix, n)
    value = power[k - 1, k - 1]
    if value <= 0:
        return 0.0
    log_factor = math.lgamma(n + 1) - n * math.log(n)
    return math.exp(math.log(value) + log_scale + log_factor)


def _scaled_power(matrix: Any, n: int) -> tuple[Any, float]:
    """Return the n-th power of a matrix as a matrix and the logarithm of its factor."""
    result, log_scale = np.eye(len(matrix)), 0.0
    square, log_square = matrix, 0.0
    while n:
        if n % 2:
            result, log_scale = result @ square, log_scale + log_square
        square, log_square = square @ square, 2 * log_square
        size = float(np.abs(square).max())
        square, log_square = square / size, log_square + math.log(size)
        size = float(np.abs(result).max())
        result, log_scale = result / size, log_scale + math.log(size)
        n //= 2
    return result, log_scale


def _cosine_distance(rows: Tensor, law: RotationalLaw) -> Tensor:
    """Return the largest distance of the distribution functions: (*batch); rows: (*batch, n, d)."""
    cosine = (rows.double() * law.mean_direction.double().unsqueeze(-2)).sum(-1).clamp(-1, 1)
    n = cosine.shape[-1]
    cosine = cosine.sort(dim=-1).values
    # The cosines come first and the laws last, as in log_prob.
    expected = law.cdf(cosine.movedim(-1, 0)).movedim(0, -1)
    steps = torch.arange(n + 1, dtype=torch.float64, device=cosine.device) / n
    above, below = steps[1:] - expected, expected - steps[:-1]
    return torch.maximum(above.amax(-1), below.amax(-1))


def _fixed_parameters(law: RotationalLaw) -> set[str]:
    """Return the names of parameters that a fit does not estimate, such as df."""
    return set(law.arg_constraints) - law.fitted_parameters


def _require_one_law(rows: Tensor, law: RotationalLaw) -> None:
    if not isinstance(law, RotationalLaw):
        raise SteradError(
            f"{type(law).__name__} is not a law of the cosine with a mean direction: give one "
            "that is, such as VonMisesFisher"
        )
    if law.batch_shape != () or rows.dim() != 2:
        raise SteradError(
            f"the law has batch shape {tuple(law.batch_shape)} and the points have shape "
            f"{tuple(rows.shape)}: give one law and points (n, d)"
        )
