"""Polynomials on [-1, 1] by interpolation at Chebyshev nodes, with derivatives of every order."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from torch import Tensor

Series = NDArray[np.float64]

MAX_GROWTH = 8.0
"""How much larger than the Chebyshev coefficients those of the powers may be for Horner's rule."""


def chebyshev_coefficients(function: Callable[[Tensor], Tensor], degree: int) -> Series:
    """Return the Chebyshev coefficients of the interpolant of `function` at degree + 1 nodes.

    >>> chebyshev_coefficients(lambda t: 2 * t**2, 4).round(12) + 0.0
    array([1., 0., 1., 0., 0.])
    """
    count = degree + 1
    odd = 2 * np.arange(count) + 1
    with torch.no_grad():
        values = function(torch.from_numpy(np.cos(odd * (math.pi / (2 * count))))).numpy()
    # Whole turns are taken off in integers: the rounding of large angles would drown the tail.
    turns = np.outer(np.arange(count), odd) % (4 * count)
    coefficients: Series = 2 / count * np.cos(turns * (math.pi / (2 * count))) @ values
    coefficients[0] /= 2
    return coefficients


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A polynomial given by Chebyshev coefficients; Horner's rule evaluates it where safe."""

    series: Series
    """Chebyshev coefficients, lowest first."""

    @classmethod
    def fit(cls, series: Series, tolerance: float) -> "Polynomial":
        """Drop the highest coefficients, as long as they are at most `tolerance`."""
        kept = np.flatnonzero(np.abs(series) > tolerance)
        return cls(series[: int(kept[-1]) + 1 if len(kept) else 1])

    @property
    def degree(self) -> int:
        """The degree that was kept."""
        return len(self.series) - 1

    @cached_property
    def powers(self) -> tuple[float, ...] | None:
        """Coefficients of the powers, or None where they would cancel and cost digits."""
        powers = chebyshev.cheb2poly(self.series)
        if np.abs(powers).sum() > MAX_GROWTH * max(np.abs(self.series).sum(), 1e-300):
            return None
        return tuple(float(x) for x in powers)

    @cached_property
    def derivative(self) -> "Polynomial":
        """The derivative, as a polynomial."""
        return Polynomial(chebyshev.chebder(self.series).astype(np.float64))

    def __call__(self, t: Tensor) -> Tensor:
        """Evaluate at `t`, with a graph."""
        return cast(Tensor, _Evaluate.apply(t, self))  # type: ignore[no-untyped-call]

    def evaluate(self, t: Tensor) -> Tensor:
        """Evaluate at `t`, without a graph."""
        if self.degree == 0:
            return torch.full_like(t, float(self.series[0]))
        if self.powers is not None:
            return _horner(t, self.powers)
        return _clenshaw(t, [float(x) for x in self.series])


def _horner(t: Tensor, powers: tuple[float, ...]) -> Tensor:
    value = t * powers[-1] + powers[-2]
    for coefficient in reversed(powers[:-2]):
        value = value.mul_(t).add_(coefficient)
    return value


def _clenshaw(t: Tensor, series: list[float]) -> Tensor:
    last, before = torch.zeros_like(t), torch.full_like(t, series[-1])
    twice = 2 * t
    for coefficient in reversed(series[1:-1]):
        last, before = before, torch.addcmul(-last, twice, before).add_(coefficient)
    return torch.addcmul(-last, t, before).add_(series[0])


class _Evaluate(torch.autograd.Function):
    """A polynomial whose backward is its derivative, again a polynomial."""

    generate_vmap_rule = True

    @staticmethod
    def forward(t: Tensor, polynomial: Polynomial) -> Tensor:
        return polynomial.evaluate(t)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Polynomial], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.polynomial = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (t,) = ctx.saved_tensors
        return gradient * ctx.polynomial.derivative(t), None
