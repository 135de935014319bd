"""The log-density as a polynomial in the cosine, for a law with a fixed concentration.

For a fixed concentration and dimension, log g is one analytic function on [-1, 1]. Its interpolant
at Chebyshev nodes converges geometrically: L. N. Trefethen, "Approximation Theory and Approximation
Practice", SIAM, 2013, theorem 8.2.
"""

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
import torch
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from torch import Tensor

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import require_concentration, require_dimension
from sterad.sphere.law import SphericalLaw
from sterad.torch_private import is_transforming

MAX_DEGREE = 64
"""Above this degree (few dimensions, large concentration), the law is evaluated directly."""

MAX_FLOAT32_SUM = 40.0
"""Sum of the absolute coefficients up to which float32 keeps an error of 1e-5; above it, float64.

Rounding errors are about eps times this sum, 40 · 6e-8 per operation.
"""

MAX_POWER_GROWTH = 8.0
"""Sum of the absolute power coefficients, relative to the Chebyshev ones, up to which Horner's rule
is used: the ratio is the loss of digits by cancellation, here at most one."""

Series = NDArray[np.float64]


class FastLogKernel:
    """A law's log-density relative to the uniform law, as a fast function of the cosine.

    Cosines are in [-1, 1], of any shape. float64 gives float64; float32 and half precision give
    float32, which makes the kernel safe under autocast.
    """

    def __init__(
        self, law: type[SphericalLaw], concentration: float, dimension: int, **shape: float
    ) -> None:
        require_dimension(dimension)
        require_concentration(torch.tensor(concentration, dtype=torch.float64, device="cpu"))
        self.law = law
        self.concentration = concentration
        self.dimension = dimension
        self.shape = shape
        series = chebyshev_coefficients(self._evaluate_law, 2 * MAX_DEGREE)
        largest = max(1.0, float(abs(series).max()))
        eps64, eps32 = (torch.finfo(x).eps * largest for x in (torch.float64, torch.float32))
        self._polynomials = {
            torch.float64: Polynomial.fit(series, 8 * eps64, 1e-11 * largest),
            torch.float32: Polynomial.fit(series, min(1e-6, eps32), 3e-6),
        }
        self._needs_double = float(abs(series).sum()) > MAX_FLOAT32_SUM

    def degree(self, dtype: torch.dtype = torch.float64) -> int | None:
        """Return the degree of the polynomial for `dtype`, or None for direct evaluation."""
        degree = self._polynomials[dtype].degree
        return degree if degree <= MAX_DEGREE else None

    def __call__(self, cosine: Tensor) -> Tensor:
        """Return log g at `cosine`, of any shape."""
        if cosine.dtype not in self._polynomials:
            cosine = cosine.float()
        polynomial = self._polynomials[cosine.dtype]
        if polynomial.degree > MAX_DEGREE:
            return self._evaluate_law(to_double(cosine)).to(cosine)
        if self._needs_double and cosine.dtype == torch.float32:
            return polynomial(to_double(cosine)).to(cosine)
        return polynomial(cosine)

    def _evaluate_law(self, cosine: Tensor) -> Tensor:
        kappa = cosine.new_tensor(self.concentration)
        return self.law.log_kernel_at(cosine, kappa, self.dimension, **self.shape)

    def __repr__(self) -> str:
        return f"FastLogKernel({self.law.__name__}, {self.concentration}, {self.dimension})"


def fast_log_kernel(
    law: type[SphericalLaw], concentration: float, dimension: int, **shape: float
) -> FastLogKernel:
    """Return the fast log kernel of a law with a fixed concentration; kernels are cached.

    `shape` holds further parameters of the law (df). For gradients with respect to the
    concentration, use the `log_kernel` method of a law, which can replace a kernel anywhere.

    >>> from sterad.sphere import AngularGaussian
    >>> log_kernel = fast_log_kernel(AngularGaussian, 0.5**0.5, 512)
    >>> log_kernel.degree(torch.float64), log_kernel.degree(torch.float32)
    (7, 3)
    """
    if not (isinstance(law, type) and issubclass(law, SphericalLaw)):
        raise SteradError(
            f"{law!r} has no kernel: give a law that depends on the cosine alone, "
            "a class derived from SphericalLaw"
        )
    log_kernel: FastLogKernel = _build_kernel(law, float(concentration), dimension, **shape)
    return log_kernel


# Any, because mypy does not accept a class as a hashable argument.
_build_kernel: Any = lru_cache(maxsize=256)(FastLogKernel)


def chebyshev_coefficients(function: Callable[[Tensor], Tensor], degree: int) -> Series:
    """Return the Chebyshev coefficients of the interpolant of `function` at degree + 1 nodes.

    >>> chebyshev_coefficients(lambda t: 2 * t**2, 4).round(12) + 0.0
    array([1., 0., 1., 0., 0.])
    """
    count = degree + 1
    odd = 2 * np.arange(count) + 1
    with torch.no_grad():
        values = function(torch.from_numpy(np.cos(odd * (math.pi / (2 * count))))).numpy()
    # Angles are reduced in integers: the rounding errors of large angles would exceed the smallest
    # coefficients.
    quarter_steps = np.outer(np.arange(count), odd) % (4 * count)
    coefficients: Series = 2 / count * np.cos(quarter_steps * (math.pi / (2 * count))) @ values
    coefficients[0] /= 2
    return coefficients


class Polynomial:
    """A polynomial on [-1, 1], with derivatives of every order.

    series: Chebyshev coefficients, lowest first. `powers` are the coefficients for Horner's rule,
    or None where they would cancel.
    """

    def __init__(self, series: Series) -> None:
        self.series = tuple(float(x) for x in series)
        self.degree = len(series) - 1
        powers = chebyshev.cheb2poly(series)
        is_stable = np.abs(powers).sum() <= MAX_POWER_GROWTH * np.abs(series).sum()
        self.powers = tuple(float(x) for x in powers) if is_stable else None

    @classmethod
    def fit(cls, series: Series, tolerance: float, slope_tolerance: float) -> "Polynomial":
        """Drop the highest coefficients that are within the tolerances of value and slope."""
        size, order = np.abs(series), np.arange(len(series))
        # |T_k| <= 1 and |T_k'| <= k² on [-1, 1].
        needed = np.flatnonzero((size > tolerance) | (size * order**2 > slope_tolerance))
        return cls(series[: int(needed[-1]) + 1 if len(needed) else 1])

    @cached_property
    def derivative(self) -> "Polynomial":
        """The derivative, as a polynomial."""
        return Polynomial(chebyshev.chebder(np.array(self.series)).astype(np.float64))

    def __call__(self, t: Tensor) -> Tensor:
        """Evaluate at `t`, differentiably."""
        # torch.func and torch.compile need plain operations, which they can transform and fuse.
        if torch.compiler.is_compiling() or is_transforming():
            return self.evaluate(t)
        return cast(Tensor, cast(Any, _Evaluate).apply(t, self))

    def evaluate(self, t: Tensor, *, in_place: bool = False) -> Tensor:
        """Evaluate at `t`; `in_place` reuses memory and therefore records no graph."""
        if self.degree == 0:
            return torch.zeros_like(t) + self.series[0]
        if self.powers is not None:
            return _horner_in_place(t, self.powers) if in_place else _horner(t, self.powers)
        return _clenshaw(t, self.series)


def _horner(t: Tensor, powers: tuple[float, ...]) -> Tensor:
    value = powers[-1] * t + powers[-2]
    for coefficient in powers[-3::-1]:
        value = value * t + coefficient
    return value


def _horner_in_place(t: Tensor, powers: tuple[float, ...]) -> Tensor:
    # With the coefficient as a 0-dimensional tensor, a step is one pass over the memory, not two.
    coefficients = _as_scalar_tensors(powers, t.dtype, t.device)
    value = torch.add(coefficients[-2], t, alpha=powers[-1])
    for coefficient in coefficients[-3::-1]:
        torch.addcmul(coefficient, value, t, out=value)
    return value


@lru_cache(maxsize=1024)
def _as_scalar_tensors(
    powers: tuple[float, ...], dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, ...]:
    return torch.tensor(powers, dtype=dtype, device=device).unbind()


def _clenshaw(t: Tensor, series: tuple[float, ...]) -> Tensor:
    """Evaluate by the recurrence b_k = a_k + 2t b_{k+1} - b_{k+2}, which is stable on [-1, 1]."""
    b_second, b_first = torch.zeros_like(t), torch.full_like(t, series[-1])
    twice = 2 * t
    for coefficient in reversed(series[1:-1]):
        b_second, b_first = b_first, torch.addcmul(coefficient - b_second, twice, b_first)
    return torch.addcmul(series[0] - b_second, t, b_first)


class _Evaluate(torch.autograd.Function):
    """Evaluation whose backward evaluates the derivative, which is a polynomial too."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, polynomial: Polynomial) -> Tensor:
        ctx.save_for_backward(t)
        ctx.derivative = polynomial.derivative
        return polynomial.evaluate(t, in_place=True)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (t,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True, for second derivatives
            return gradient * ctx.derivative(t), None
        return ctx.derivative.evaluate(t, in_place=True).mul_(gradient), None
