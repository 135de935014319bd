"""The angular Gaussian with any covariance: the direction of X ~ N(m, Σ).

With A = uᵀΣ⁻¹u, λ² = mᵀΣ⁻¹m and γ = uᵀΣ⁻¹m/√A the density relative to the uniform law is
A^{-d/2} |Σ|^{-1/2} exp(-λ²/2) E[exp(γR)], R ~ χ_d (docs/mathematics.md).
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor
from torch.distributions import constraints

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import (
    ArrayLike,
    as_float_tensor,
    broadcast_shapes,
    require_dimension,
    require_points,
)
from sterad.sphere.covariance import NOT_POSITIVE_DEFINITE, require_full_rank
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.fit import Fit
from sterad.sphere.gaussian_fit import (
    maximize_gaussian,
    maximize_jointly,
    moment_start,
    unit_factor,
)
from sterad.sphere.gaussian_moments import direction_entropy, direction_moments
from sterad.sphere.observed_information import GaussianErrors
from sterad.sphere.quadrature import log_area, log_chi_mgf
from sterad.sphere.weighted_points import WeightedPoints


class GeneralAngularGaussian(SphereDistribution):
    """The direction of X ~ N(mean, Σ), with Σ given by exactly one of three arguments.

    mean: (*batch, d), of any length; covariance_matrix, precision_matrix: (*batch, d, d);
    scale_tril: the lower Cholesky factor of Σ. For c > 0, cm with c²Σ is the same law; `fit`
    returns the one with determinant 1, with standard errors of every entry of `loc` and
    `covariance_matrix` from the observed information. They are infinite above 61 dimensions: the
    information is a matrix of d(d + 3)/2 - 1 rows, and is computed for at most 2,000. Use
    `Fit.standard_error_of` there.

    >>> law = GeneralAngularGaussian(torch.tensor([1.0, 0.0]), covariance_matrix=torch.eye(2))
    >>> round(law.log_prob(torch.tensor([0.0, 1.0])).item(), 4) # log(1/2π) - 1/2
    -2.3379
    """

    arg_constraints: dict[str, constraints.Constraint] = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "scale_tril": constraints.lower_cholesky,
    }
    has_rsample = True
    fitted_parameters = frozenset({"loc", "scale_tril"})
    loc: Tensor
    scale_tril: Tensor

    def __init__(
        self,
        mean: ArrayLike,
        covariance_matrix: ArrayLike | None = None,
        scale_tril: ArrayLike | None = None,
        precision_matrix: ArrayLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        mean = as_float_tensor("mean", mean)
        dimension = mean.shape[-1] if mean.dim() else 1
        require_dimension(dimension)
        arguments = {
            "covariance_matrix": covariance_matrix,
            "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }
        given = {
            name: as_float_tensor(name, matrix, mean)
            for name, matrix in arguments.items()
            if matrix is not None
        }
        if len(given) != 1:
            raise SteradError(
                f"{len(given)} matrices are given: give exactly one of {', '.join(arguments)}"
            )
        ((name, matrix),) = given.items()
        if matrix.shape[-2:] != (dimension, dimension):
            raise SteradError(
                f"the covariance is {tuple(matrix.shape[-2:])}, but the mean has {dimension} "
                f"coordinates: give a {dimension} × {dimension} matrix"
            )
        batch = broadcast_shapes(mean.shape[:-1], matrix.shape[:-2])
        try:
            factor = _cholesky_factor(name, matrix)
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
            raise SteradError(NOT_POSITIVE_DEFINITE) from error
        validate = self._validate_args if validate_args is None else validate_args
        if validate and not bool((factor.diagonal(dim1=-2, dim2=-1) > 0).all()):
            raise SteradError(NOT_POSITIVE_DEFINITE)
        self.loc = mean.expand(*batch, dimension)
        self.scale_tril = factor.expand(*batch, dimension, dimension)
        super().__init__(batch, mean.shape[-1:], validate_args=validate_args)

    @property
    def covariance_matrix(self) -> Tensor:
        """Σ: (*batch, d, d)."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """Σ⁻¹: (*batch, d, d)."""
        return torch.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        """The mean of a point, inside the ball, without gradients: (*batch, d)."""
        return direction_moments(self.loc, self.scale_tril)[0].to(self.loc)

    @property
    def mode(self) -> Tensor:
        """A direction of highest density, without gradients: (*batch, d).

        There is no formula: the best end of an ascent from the mean and from both ends of the
        longest axis of Σ.
        """
        mean, factor = (to_double(x).detach() for x in (self.loc, self.scale_tril))
        axis = torch.linalg.eigh(factor @ factor.mT)[1][..., -1]
        is_zero = mean.norm(dim=-1, keepdim=True) == 0
        starts = torch.stack([torch.where(is_zero, axis, mean), axis, -axis])
        law = GeneralAngularGaussian(mean, scale_tril=factor, validate_args=False)
        flat = law.expand(starts.shape[:-1]).flatten()

        def log_density(values: Sequence[Tensor]) -> Tensor:
            return flat.log_prob(torch.nn.functional.normalize(values[0], dim=-1))

        (ends,), _ = maximize_jointly(log_density, [starts.flatten(0, -2)])
        ends = torch.nn.functional.normalize(ends, dim=-1).reshape(starts.shape)
        best = law.log_prob(ends).argmax(0)
        index = best.reshape(1, *best.shape, 1).expand(1, *starts.shape[1:])
        return ends.gather(0, index)[0].to(self.loc)

    @property
    def variance(self) -> Tensor:
        """The variance of each coordinate of a point, without gradients: (*batch, d)."""
        mean, second = direction_moments(self.loc, self.scale_tril)
        return (second.diagonal(dim1=-2, dim2=-1) - mean.square()).to(self.loc)

    def log_prob(self, value: ArrayLike) -> Tensor:
        """Return the log-density with respect to area at `value`: (..., *batch, d) unit rows."""
        value = as_float_tensor("value", value)
        require_points(self, value)
        factor, loc = to_double(self.scale_tril), to_double(self.loc).unsqueeze(-1)
        point = to_double(value).unsqueeze(-1)
        # Whitened by L⁻¹, Σ = LLᵀ: A, λ² and uᵀΣ⁻¹m become inner products.
        point = torch.linalg.solve_triangular(factor, point, upper=False)
        center = torch.linalg.solve_triangular(factor, loc, upper=False)
        a = point.square().sum((-2, -1))
        gamma = (point * center).sum((-2, -1)) / a.sqrt()
        log_volume = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) + log_area(self.dimension)
        radial = log_chi_mgf(gamma, self.dimension) - center.square().sum((-2, -1)) / 2
        density: Tensor = radial - self.dimension / 2 * a.log() - log_volume
        return density.to(value.device, torch.promote_types(value.dtype, self.loc.dtype))

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area: (*batch)."""
        return direction_entropy(self.loc, self.scale_tril).to(self.loc)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        mean = self.loc
        noise = torch.randn(shape, generator=generator, dtype=mean.dtype, device=mean.device)
        point = mean + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)
        return torch.nn.functional.normalize(point, dim=-1)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        """Maximize over m and a factor of Σ whose log-diagonal has mean zero."""
        require_full_rank(cls.__name__, data)
        return maximize_gaussian(cls, data, moment_start(data), _factor_of)

    @classmethod
    def named_errors(cls, errors: GaussianErrors) -> dict[str, Tensor]:
        """Return the standard errors of a fit by the names of the parameters: (k, ...) each."""
        return {"loc": errors.loc, "covariance_matrix": errors.covariance_matrix}


def _factor_of(mean: Tensor, raw: Tensor) -> Tensor:
    return unit_factor(raw)


def _cholesky_factor(name: str, matrix: Tensor) -> Tensor:
    """Return the lower Cholesky factor of Σ from the argument `name`."""
    factor = matrix
    if name == "covariance_matrix":
        factor = torch.linalg.cholesky(matrix)
    elif name == "precision_matrix":
        # Rows and columns are reversed, so that the factor of the inverse is lower.
        upper = torch.linalg.cholesky(matrix.flip(-2, -1)).flip(-2, -1)
        eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        factor = torch.linalg.solve_triangular(upper, eye, upper=True).mT
    return factor
