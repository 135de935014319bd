"""The angular central Gaussian: the direction of X ~ N(0, Σ), a law of axes.

D. E. Tyler, "Statistical Analysis for the Angular Central Gaussian Distribution on the Sphere",
Biometrika 74(3), 1987, https://doi.org/10.1093/biomet/74.3.579.
"""

from typing import Self

import torch
from torch import Tensor
from torch.distributions import constraints

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import ArrayLike, as_float_tensor, require_dimension, require_points
from sterad.sphere.covariance import cholesky_or_error, require_full_rank, unit_determinant
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.fit import Fit
from sterad.sphere.gaussian_fit import pack, raw_factor, unit_factor, unpack
from sterad.sphere.gaussian_moments import direction_entropy, direction_moments
from sterad.sphere.observed_information import MAX_PARAMETERS, DeferredErrors, gaussian_errors
from sterad.sphere.quadrature import log_area
from sterad.sphere.weighted_points import WeightedPoints, outer_sum

MAX_STEPS = 1000
TOLERANCE = 1e-12
"""Relative change of the matrix at which Tyler's iteration ends."""


class AngularCentralGaussian(SphereDistribution):
    """The direction of X ~ N(0, Σ); u and -u have the same density.

    covariance_matrix: (*batch, d, d), positive definite. For c > 0, cΣ is the same law; `fit`
    returns the matrix of determinant 1, with standard errors of its entries from the observed
    information, or above 2,000 parameters (62 dimensions) from the expected one.

    >>> law = AngularCentralGaussian(torch.diag(torch.tensor([4.0, 1.0, 1.0])))
    >>> round(law.log_prob(torch.eye(3)).exp()[0].item() * 4 * torch.pi, 4)
    4.0
    """

    arg_constraints: dict[str, constraints.Constraint] = {  # noqa: RUF012
        "scale_tril": constraints.lower_cholesky
    }
    has_rsample = True
    fitted_parameters = frozenset({"scale_tril"})
    scale_tril: Tensor

    def __init__(self, covariance_matrix: ArrayLike, validate_args: bool | None = None) -> None:
        matrix = as_float_tensor("covariance_matrix", covariance_matrix)
        if matrix.dim() < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise SteradError(
                f"covariance_matrix has shape {tuple(matrix.shape)}: give a square matrix"
            )
        require_dimension(matrix.shape[-1])
        self.scale_tril = cholesky_or_error(matrix)
        super().__init__(matrix.shape[:-2], matrix.shape[-1:], validate_args=validate_args)

    @property
    def covariance_matrix(self) -> Tensor:
        """Σ: (*batch, d, d)."""
        return self.scale_tril @ self.scale_tril.mT

    def log_prob(self, value: ArrayLike) -> Tensor:
        """Return the log-density with respect to area at `value`: (..., *batch, d) unit rows."""
        value = as_float_tensor("value", value)
        require_points(self, value)
        factor = to_double(self.scale_tril)
        point = torch.linalg.solve_triangular(factor, to_double(value).unsqueeze(-1), upper=False)
        log_volume = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) + log_area(self.dimension)
        a = point.square().sum((-2, -1))
        density: Tensor = -self.dimension / 2 * a.log() - log_volume
        return density.to(value.device, torch.promote_types(value.dtype, self.scale_tril.dtype))

    @property
    def mean(self) -> Tensor:
        """Zeros, as u and -u have the same density: (*batch, d)."""
        return torch.zeros_like(self.scale_tril[..., 0])

    @property
    def variance(self) -> Tensor:
        """The variance of each coordinate, without gradients: (*batch, d)."""
        second = direction_moments(self.mean, self.scale_tril)[1]
        return second.diagonal(dim1=-2, dim2=-1).to(self.scale_tril)

    @property
    def mode(self) -> Tensor:
        """A leading eigenvector of Σ, one of two opposite modes: (*batch, d)."""
        vectors: Tensor = torch.linalg.eigh(self.covariance_matrix)[1]
        return vectors[..., -1]

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area: (*batch)."""
        return direction_entropy(self.mean, self.scale_tril).to(self.scale_tril)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        like = self.scale_tril
        noise = torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
        return torch.nn.functional.normalize((like @ noise.unsqueeze(-1)).squeeze(-1), dim=-1)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        """Fit by Tyler's iteration Σ ← d mean(uuᵀ / uᵀΣ⁻¹u), scaled to determinant 1."""
        require_full_rank(cls.__name__, data)
        matrix, converged = _tyler(data)
        batch, like, d = data.batch_shape, data.points, data.dimension
        law = cls(matrix.reshape(*batch, d, d).to(like))
        log_likelihood = _log_likelihood(data, cholesky_or_error(matrix))

        def errors() -> dict[str, Tensor]:
            error = _standard_error(data, matrix).reshape(*batch, d, d)
            return {"covariance_matrix": error.to(like)}

        return Fit(
            law=law,
            log_likelihood=log_likelihood.reshape(batch).to(like),
            standard_errors=DeferredErrors(errors),
            count=data.count.reshape(batch).to(like),
            n_parameters=d * (d + 1) // 2 - 1,
            at_limit=torch.zeros(batch, dtype=torch.bool, device=like.device),
            converged=converged.reshape(batch).to(like.device),
        )


def _tyler(data: WeightedPoints) -> tuple[Tensor, Tensor]:
    """Return the matrices of determinant 1, (k, d, d), and whether each has converged."""
    matrix = unit_determinant(data.scatter())
    converged = torch.zeros(len(matrix), dtype=torch.bool, device=matrix.device)
    for _ in range(MAX_STEPS):
        factor = cholesky_or_error(matrix)
        total = torch.zeros_like(matrix)
        for rows, weights in data.chunks():
            white = torch.linalg.solve_triangular(factor, rows.mT, upper=False)
            total = total + outer_sum(weights / white.square().sum(-2), rows)
        new = unit_determinant(total)
        gap = (new - matrix).abs().amax((-2, -1)) / new.abs().amax((-2, -1))
        matrix, converged = new, gap <= TOLERANCE
        if bool(converged.all()):
            break
    return matrix, converged


def _log_likelihood(data: WeightedPoints, factor: Tensor) -> Tensor:
    """Return the weighted sum of log-densities with respect to area: (k,)."""
    log_volume = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) + log_area(data.dimension)
    total = -data.count * log_volume
    for rows, weights in data.chunks():
        white = torch.linalg.solve_triangular(factor, rows.mT, upper=False)
        total = total - data.dimension / 2 * (weights * white.square().sum(-2).log()).sum(-1)
    return total


def _standard_error(data: WeightedPoints, matrix: Tensor) -> Tensor:
    """Return the standard errors of the entries of Σ, of determinant 1: (k, d, d)."""
    d = data.dimension
    if d * (d + 1) // 2 - 1 > MAX_PARAMETERS:
        return _expected_error(matrix, data.count)
    raw = raw_factor(matrix)

    def chart(place: Tensor) -> tuple[Tensor, Tensor]:
        free = unpack(place, d)[1]
        return torch.zeros_like(free[..., 0]), unit_factor(free)

    return gaussian_errors(data, chart, pack(raw[..., :0, 0], raw)).covariance_matrix


def _expected_error(matrix: Tensor, count: Tensor) -> Tensor:
    """Return √((1 + 2/d)(Σᵢᵢ Σⱼⱼ + Σᵢⱼ² - (2/d) Σᵢⱼ²)/n), for determinant 1: (k, d, d)."""
    d = matrix.shape[-1]
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    spread = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2) + (1 - 2 / d) * matrix.square()
    return ((1 + 2 / d) * spread / count[:, None, None]).sqrt()
