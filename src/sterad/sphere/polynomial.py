"""Polynomials on [-1, 1] by interpolation at Chebyshev nodes, with derivatives of every order."""

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
import torch
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from torch import Tensor

from sterad.torch_private import is_transforming

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


class Polynomial:
    """A polynomial given by Chebyshev coefficients, lowest first.

    `powers` are the coefficients of Horner's rule, or None where they would cancel and cost digits.
    """

    def __init__(self, series: Series) -> None:
        self.series = tuple(float(x) for x in series)
        self.degree = len(series) - 1
        powers = chebyshev.cheb2poly(series)
        safe = np.abs(powers).sum() <= MAX_GROWTH * np.abs(series).sum()
        self.powers = tuple(float(x) for x in powers) if safe else None

    @classmethod
    def fit(cls, series: Series, tolerance: float, slope_tolerance: float) -> "Polynomial":
        """Drop the highest coefficients that change value and slope by no more than allowed."""
        size, order = np.abs(series), np.arange(len(series))
        # The slope of a Chebyshev polynomial of degree k reaches k².
        kept = np.flatnonzero((size > tolerance) | (size * order**2 > slope_tolerance))
        return cls(series[: int(kept[-1]) + 1 if len(kept) else 1])

    @cached_property
    def derivative(self) -> "Polynomial":
        """The derivative, as a polynomial."""
        return Polynomial(chebyshev.chebder(np.array(self.series)).astype(np.float64))

    def __call__(self, t: Tensor) -> Tensor:
        """Evaluate at `t`, with a graph."""
        # torch.func and torch.compile see plain operations, which they transform and fuse.
        if torch.compiler.is_compiling() or is_transforming():
            return self.evaluate(t)
        return cast(Tensor, cast(Any, _Evaluate).apply(t, self))

    def evaluate(self, t: Tensor, *, in_place: bool = False) -> Tensor:
        """Evaluate at `t` in plain operations; `in_place` reuses memory, and so has no graph."""
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


@lru_cache(maxsize=1024)
def _steps(
    powers: tuple[float, ...], dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, ...]:
    return torch.tensor(powers, dtype=dtype, device=device).unbind()


def _horner_in_place(t: Tensor, powers: tuple[float, ...]) -> Tensor:
    # A coefficient as a tensor without dimensions makes a step one pass over the memory, not two.
    steps = _steps(powers, t.dtype, t.device)
    value = torch.add(steps[-2], t, alpha=powers[-1])
    for coefficient in steps[-3::-1]:
        torch.addcmul(coefficient, value, t, out=value)
    return value


def _clenshaw(t: Tensor, series: tuple[float, ...]) -> Tensor:
    last, before = torch.zeros_like(t), torch.full_like(t, series[-1])
    twice = 2 * t
    for coefficient in reversed(series[1:-1]):
        last, before = before, torch.addcmul(coefficient - last, twice, before)
    return torch.addcmul(series[0] - last, t, before)


class _Evaluate(torch.autograd.Function):
    """A polynomial whose backward is its derivative, again a polynomial."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, polynomial: Polynomial) -> Tensor:
        ctx.save_for_backward(t)
        ctx.slope = polynomial.derivative
        return polynomial.evaluate(t, in_place=True)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (t,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives are wanted
            return gradient * ctx.slope(t), None
        return ctx.slope.evaluate(t, in_place=True).mul_(gradient), None
