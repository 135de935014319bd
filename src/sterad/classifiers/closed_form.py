"""Linear scores in closed form from counts, class means and the scatter within classes.

Learners on features keep these statistics along a stream, classifiers compute them from a memory.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from sterad.errors import SteradError


class LinearScores(NamedTuple):
    """Scores (h - center) @ weights + bias; differences first, so that an offset cancels."""

    center: Tensor
    """(d,)"""
    weights: Tensor
    """(d, k), a column for each class seen."""
    bias: Tensor
    """(k,)"""


def discriminants(counts: Tensor, means: Tensor, covariance: Tensor) -> LinearScores:
    """Return hᵀΛμ_c - ½ μ_cᵀΛμ_c for Λ = Σ⁻¹, with h and μ_c relative to the mean of all rows.

    counts: (k,); means: (k, d); covariance: (d, d), regular.
    """
    factor = factorize(covariance, "set a larger strength")
    center = counts @ means / counts.sum()
    deviations = (means - center).T
    weights = torch.cholesky_solve(deviations, factor)
    return LinearScores(center, weights, -(deviations * weights).sum(dim=0) / 2)


def shrunk(covariance: Tensor, share: float) -> Tensor:
    """Return (1 - share) Σ + share v I, in the memory of `covariance`; I if that is zero."""
    variance = covariance.trace() / len(covariance)
    target = (share * variance).where(variance > 0, 1.0)
    return add_to_diagonal(covariance.mul_(1 - share), target)


def oas_strength(covariance: Tensor, rows: int) -> float:
    """Return the oracle approximating shrinkage of the covariance of so many rows.

    >>> oas_strength(torch.diag(torch.tensor([1.0, 3.0])), rows=10)
    0.8
    """
    d, trace = len(covariance), float(covariance.trace())
    squares = float(covariance.square().sum())
    spread = squares - trace**2 / d  # 0 if all eigenvalues are equal
    above = (1 - 2 / d) * squares + trace**2
    below = (rows + 1 - 2 / d) * spread
    return min(above / below, 1.0) if below > 0 else 1.0


def factorize(matrix: Tensor, remedy: str) -> Tensor:
    """Return the Cholesky factor of a matrix; raise with the remedy if it is singular."""
    factor: Tensor
    factor, info = torch.linalg.cholesky_ex(matrix)
    if int(info):
        raise SteradError(
            f"the covariance of {len(matrix)} features is singular in float64: {remedy}"
        )
    return factor


def add_to_diagonal(matrix: Tensor, value: float | Tensor) -> Tensor:
    """Add a number to the diagonal of `matrix` in place, and return it."""
    matrix.diagonal().add_(value)
    return matrix
