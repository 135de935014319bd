"""The elliptically symmetric angular Gaussian, in any dimension.

P. J. Paine, S. P. Preston, M. Tsagris and A. T. A. Wood, "An Elliptically Symmetric Angular
Gaussian Distribution", Statistics and Computing 28, 2018,
https://doi.org/10.1007/s11222-017-9756-4.
"""

from typing import Self

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.sphere.constraints import ArrayLike, as_float_tensor
from sterad.sphere.covariance import cholesky_or_error, require_full_rank, unit_determinant
from sterad.sphere.fit import Fit
from sterad.sphere.gaussian_fit import (
    maximize_gaussian,
    moment_start,
    raw_factor,
    unit_factor,
)
from sterad.sphere.general_angular_gaussian import GeneralAngularGaussian
from sterad.sphere.maximum_likelihood import split_resultant
from sterad.sphere.observed_information import GaussianErrors
from sterad.sphere.weighted_points import WeightedPoints

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3}
"""Largest accepted error of Σm = m, relative to |m|, and of log |Σ| per dimension."""


class EllipticallySymmetricAngularGaussian(GeneralAngularGaussian):
    """The direction of X ~ N(m, Σ) with Σm = m and |Σ| = 1, whose contours are ellipses.

    The two constraints make m and Σ identifiable: the length of m is the concentration, and the
    (d - 1) × (d - 1) block of Σ in the tangent space, with determinant 1, is the shape. Use
    `from_tangent` for parameters without constraints. `fit` gives standard errors of the
    concentration, the mean direction and every entry of `loc` and `covariance_matrix` from the
    observed information; for more than 2,000 parameters (62 dimensions) all but that of the
    concentration are infinite.

    >>> law = EllipticallySymmetricAngularGaussian.from_tangent(
    ...     torch.tensor([3.0, 0.0, 0.0]), torch.diag(torch.tensor([4.0, 1.0]))
    ... )
    >>> law.covariance_matrix.diagonal().round(decimals=4)
    tensor([1.0000, 2.0000, 0.5000])
    """

    def __init__(
        self,
        mean: ArrayLike,
        covariance_matrix: ArrayLike | None = None,
        scale_tril: ArrayLike | None = None,
        precision_matrix: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(mean, covariance_matrix, scale_tril, precision_matrix, validate_args)
        if self._validate_args:
            _require_constraints(self.loc, self.scale_tril)

    @classmethod
    def from_tangent(
        cls, mean: ArrayLike, tangent_covariance: ArrayLike, validate_args: bool | None = None
    ) -> Self:
        """Return the law with this covariance of the tangent coordinates, scaled to determinant 1.

        mean: (*batch, d), not zero; tangent_covariance: (*batch, d - 1, d - 1), in the basis that
        the reflection of the first axis to the mean makes of the other axes.
        """
        mean = as_float_tensor("mean", mean)
        block = as_float_tensor("tangent_covariance", tangent_covariance, mean)
        if block.shape[-2:] != (mean.shape[-1] - 1, mean.shape[-1] - 1):
            raise SteradError(
                f"tangent_covariance is {tuple(block.shape[-2:])}, but the mean has "
                f"{mean.shape[-1]} coordinates: give a matrix of one row and column less"
            )
        factor = cholesky_or_error(unit_determinant(block))
        return cls(mean, covariance_matrix=_covariance(mean, factor), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The length of m: (*batch)."""
        length: Tensor = torch.linalg.vector_norm(self.loc, dim=-1)
        return length

    @property
    def mean_direction(self) -> Tensor:
        """The direction of m, about which the law is symmetric: (*batch, d)."""
        return torch.nn.functional.normalize(self.loc, dim=-1)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        """Maximize over m and the factor of the tangent block."""
        require_full_rank(cls.__name__, data)
        if bool((split_resultant(data.resultant(), data.count)[1] == 0).any()):
            raise SteradError(
                f"the resultant of the points is zero, so that {cls.__name__} has no mean "
                "direction: fit AngularCentralGaussian, or GeneralAngularGaussian"
            )
        return maximize_gaussian(cls, data, _start(data), _factor_of)

    @classmethod
    def named_errors(cls, errors: GaussianErrors) -> dict[str, Tensor]:
        """Return the standard errors of a fit by the names of the parameters: (k, ...) each."""
        scalars = {"concentration": errors.length, "mean_direction": errors.angle}
        return scalars | super().named_errors(errors)


def _factor_of(mean: Tensor, raw: Tensor) -> Tensor:
    return cholesky_or_error(_covariance(mean, unit_factor(raw)))


def _basis(mean: Tensor) -> Tensor:
    """Return an orthogonal matrix whose first column is ±m/|m|: a reflection, (*batch, d, d)."""
    unit = torch.nn.functional.normalize(mean, dim=-1)
    sign = torch.where(unit[..., :1] >= 0, 1.0, -1.0).to(unit)
    mirror = torch.cat([unit[..., :1] + sign, unit[..., 1:]], -1)
    outer = mirror.unsqueeze(-1) * mirror.unsqueeze(-2)
    eye = torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
    return eye - 2 * outer / mirror.square().sum(-1)[..., None, None]


def _covariance(mean: Tensor, factor: Tensor) -> Tensor:
    """Return Σ = mmᵀ/|m|² + B L Lᵀ Bᵀ, B the tangent basis: (*batch, d, d)."""
    basis = _basis(mean)
    spread = basis[..., 1:] @ factor
    along = basis[..., :1]
    return along @ along.mT + spread @ spread.mT


def _start(data: WeightedPoints) -> tuple[Tensor, Tensor]:
    """Return m and the parameters of the tangent factor, from the moments of the points."""
    mean, raw = moment_start(data)
    factor = unit_factor(raw)
    tangent = _basis(mean)[..., 1:]
    block = tangent.mT @ factor @ factor.mT @ tangent
    return mean, raw_factor(unit_determinant(block))


def _require_constraints(mean: Tensor, factor: Tensor) -> None:
    tolerance = TOLERANCE.get(mean.dtype, 1e-2)
    image = (factor @ (factor.mT @ mean.unsqueeze(-1))).squeeze(-1)
    length = torch.linalg.vector_norm(mean, dim=-1)
    gap = torch.linalg.vector_norm(image - mean, dim=-1) / length
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().mean(-1).abs()
    if bool((length == 0).any() | (gap > tolerance).any() | (log_det > tolerance).any()):
        raise SteradError(
            "the elliptically symmetric angular Gaussian needs Σm = m, |Σ| = 1 and m other than "
            "zero: use from_tangent, or GeneralAngularGaussian for any covariance"
        )
