"""The angular Gaussian with any covariance: the direction of X ~ N(m, Σ).

With A = uᵀΣ⁻¹u, λ² = mᵀΣ⁻¹m and γ = uᵀΣ⁻¹m/√A the density relative to the uniform law is
A^{-d/2} |Σ|^{-1/2} exp(-λ²/2) E[exp(γR)], R ~ χ_d (docs/mathematics.md).
"""

from typing import Self

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import (
    ArrayLike,
    as_float_tensor,
    broadcast_shapes,
    require_dimension,
    require_points,
    unit_sphere,
)
from sterad.sphere.law import Shape, log_area
from sterad.sphere.quadrature import log_chi_mgf


class GeneralAngularGaussian(Distribution):
    """The direction of X ~ N(mean, Σ), with Σ given by exactly one of three arguments.

    mean: (*batch, d), of any length; covariance_matrix, precision_matrix: (*batch, d, d);
    scale_tril: the lower Cholesky factor of Σ. For c > 0, cm with c²Σ is the same law.

    >>> law = GeneralAngularGaussian(torch.tensor([1.0, 0.0]), covariance_matrix=torch.eye(2))
    >>> round(law.log_prob(torch.tensor([0.0, 1.0])).item(), 4) # log(1/2π) - 1/2
    -2.3379
    """

    arg_constraints: dict[str, constraints.Constraint] = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "scale_tril": constraints.lower_cholesky,
    }
    support: constraints.Constraint = unit_sphere
    has_rsample = True
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
        factor = _cholesky_factor(
            *(
                None if matrix is None else as_float_tensor(name, matrix, mean)
                for name, matrix in (
                    ("covariance_matrix", covariance_matrix),
                    ("scale_tril", scale_tril),
                    ("precision_matrix", precision_matrix),
                )
            )
        )
        if factor.shape[-2:] != (dimension, dimension):
            raise SteradError(
                f"the covariance is {tuple(factor.shape[-2:])}, but the mean has {dimension} "
                f"coordinates: give a {dimension} × {dimension} matrix"
            )
        validate = self._validate_args if validate_args is None else validate_args
        if validate and not bool((factor.diagonal(dim1=-2, dim2=-1) > 0).all()):
            raise SteradError(
                "the covariance is not positive definite: give a symmetric matrix with positive "
                "eigenvalues (add a multiple of the identity if it is nearly so)"
            )
        batch = broadcast_shapes(mean.shape[:-1], factor.shape[:-2])
        self.loc = mean.expand(*batch, dimension)
        self.scale_tril = factor.expand(*batch, dimension, dimension)
        super().__init__(batch, mean.shape[-1:], validate_args=validate_args)

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return self.event_shape[0]

    @property
    def covariance_matrix(self) -> Tensor:
        """Σ: (*batch, d, d)."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """Σ⁻¹: (*batch, d, d)."""
        return torch.cholesky_inverse(self.scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log-density with respect to area at `value`: (..., *batch, d) unit rows."""
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

    def rsample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points that are differentiable with respect to the parameters."""
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(
            shape, generator=generator, dtype=self.loc.dtype, device=self.loc.device
        )
        point = self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)
        return torch.nn.functional.normalize(point, dim=-1)

    def sample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points: (*sample_shape, *batch, d)."""
        with torch.no_grad():
            return self.rsample(sample_shape, generator)

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        """Return the same law with its parameters expanded to `batch_shape`."""
        new: Self = self.__new__(type(self)) if _instance is None else _instance
        shape = torch.Size(batch_shape)
        new.loc = self.loc.expand(shape + self.event_shape)
        new.scale_tril = self.scale_tril.expand(shape + self.event_shape * 2)
        super(GeneralAngularGaussian, new).__init__(shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new


def _cholesky_factor(
    covariance: Tensor | None, factor: Tensor | None, precision: Tensor | None
) -> Tensor:
    """Return the lower Cholesky factor of Σ; NaN where Σ is not positive definite."""
    given = [x for x in (covariance, factor, precision) if x is not None]
    if len(given) != 1:
        raise SteradError(
            f"{len(given)} matrices are given: give exactly one of covariance_matrix, scale_tril "
            "and precision_matrix"
        )
    if factor is not None:
        return factor
    # Rows and columns of the precision are reversed, so that the factor of its inverse is lower.
    source = given[0] if precision is None else precision.flip(-2, -1)
    lower, failed = torch.linalg.cholesky_ex(source)
    lower = torch.where((failed > 0)[..., None, None], torch.nan, lower)
    if precision is None:
        return lower
    eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    inverse: Tensor = torch.linalg.solve_triangular(lower.flip(-2, -1), eye, upper=True)
    return inverse.mT
