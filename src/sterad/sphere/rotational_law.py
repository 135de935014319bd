"""The base class of laws on the unit sphere that are symmetric about a direction."""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch.distributions import constraints

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.sphere.constraints import (
    ArrayLike,
    as_float_tensor,
    broadcast_shapes,
    require_concentration,
    require_dimension,
    require_points,
    require_unit,
    unit_sphere,
)
from sterad.sphere.cumulative import CosineIntegral
from sterad.sphere.distribution import SphereDistribution
from sterad.sphere.quadrature import cosine_weights, expectation, log_area
from sterad.sphere.reparametrization import reparametrize, turn_to_pole


class RotationalLaw(SphereDistribution):
    """The base of laws whose density depends on the cosine with a mean direction alone.

    Subclasses implement `log_kernel_at`. Moments, distribution functions, divergences and samples
    follow from it; a faster `sample_cosine` can replace the inverse distribution function.
    """

    arg_constraints: dict[str, constraints.Constraint] = {  # noqa: RUF012
        "mean_direction": unit_sphere,
        "concentration": constraints.nonnegative,
    }
    has_rsample = True
    has_differentiable_cosine: ClassVar[bool] = False
    """Whether `sample_cosine` is a smooth function of the parameters and of noise that does not
    depend on them. Otherwise, as with rejection, `rsample` differentiates the cosine implicitly."""
    mean_direction: Tensor
    concentration: Tensor

    def __init__(
        self,
        mean_direction: ArrayLike,
        concentration: ArrayLike,
        validate_args: bool | None = None,
    ) -> None:
        mean_direction = as_float_tensor("mean_direction", mean_direction)
        require_dimension(mean_direction.shape[-1] if mean_direction.dim() else 1)
        concentration = as_float_tensor("concentration", concentration, mean_direction)
        shape = broadcast_shapes(mean_direction.shape[:-1], concentration.shape)
        self.mean_direction = mean_direction.expand(*shape, mean_direction.shape[-1])
        self.concentration = concentration.expand(shape)
        if self._validate_args if validate_args is None else validate_args:
            require_unit("mean_direction", mean_direction)
            self._require_concentration(concentration)
        super().__init__(shape, mean_direction.shape[-1:], validate_args=validate_args)

    def _require_concentration(self, concentration: Tensor) -> None:
        require_concentration(concentration)

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return the log-density relative to the uniform law; float64 in, float64 out."""
        raise NotImplementedError

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draw cosines with the mean direction: `shape`, float64; by default from `icdf`."""
        kappa = to_double(self.concentration)
        uniform = torch.rand(shape, generator=generator, dtype=kappa.dtype, device=kappa.device)
        flat = self.flatten()
        integral = CosineIntegral(flat._log_kernel, kappa.reshape(-1), self.dimension)
        return integral.invert(uniform.reshape(-1, integral.width.shape[1])).reshape(shape)

    def log_kernel(self, cosine: Tensor) -> Tensor:
        """Return the log-density relative to the uniform law at `cosine`: (..., *batch)."""
        value = self._log_kernel(to_double(cosine))
        dtype = torch.promote_types(cosine.dtype, self.concentration.dtype)
        # A cosine without dimensions may be on the CPU while the law is on a device.
        return value.to(cosine.device if cosine.dim() else self.concentration.device, dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        """Return the log-density with respect to area at `value`: (..., *batch, d) unit rows."""
        value = as_float_tensor("value", value)
        require_points(self, value)
        # float64, because the slope in the cosine, of the order of κ√d, amplifies rounding errors.
        points, pole = to_double(value), to_double(self.mean_direction)
        # A product of matrix and vector reads the points once and stores no array of their size.
        cosine = points @ pole if pole.dim() == 1 else (points * pole).sum(-1)
        density = self._log_kernel(cosine) - log_area(self.dimension)
        dtype = torch.promote_types(value.dtype, self.concentration.dtype)
        return density.to(value.device, dtype)

    def _log_kernel(self, cosine: Tensor) -> Tensor:
        return self.log_kernel_at(cosine, to_double(self.concentration), self.dimension)

    @property
    def mean_resultant_length(self) -> Tensor:
        """The length of the mean vector, E[cosine]: (*batch)."""
        return self._expectation(lambda cosine: cosine).clamp(0, 1)

    @property
    def mean(self) -> Tensor:
        """The mean vector, inside the ball: (*batch, d)."""
        return self.mean_direction * self.mean_resultant_length.unsqueeze(-1)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance of a point: (*batch, d, d)."""
        along, across = self._variances()
        mu = self.mean_direction
        eye = torch.eye(self.dimension, dtype=mu.dtype, device=mu.device)
        outer = mu.unsqueeze(-1) * mu.unsqueeze(-2)
        return across[..., None, None] * (eye - outer) + along[..., None, None] * outer

    @property
    def variance(self) -> Tensor:
        """The variance of each coordinate: (*batch, d)."""
        along, across = (x.unsqueeze(-1) for x in self._variances())
        square = self.mean_direction.square()
        return across * (1 - square) + along * square

    def _variances(self) -> tuple[Tensor, Tensor]:
        """Return the variances along the mean direction and in each tangent direction."""
        like = to_double(self.concentration)
        t, weights = cosine_weights(self._log_kernel, like, self.dimension)
        center = (weights * t).sum(0)
        along = (weights * (t - center).square()).sum(0)
        across = (weights * (1 - t) * (1 + t)).sum(0) / (self.dimension - 1)
        return along.to(self.concentration), across.to(self.concentration)

    def cdf(self, value: ArrayLike) -> Tensor:
        """Return the probability of a cosine with the mean direction below `value`: (..., *batch).

        Relative accuracy is kept in the lower tail; `sf` keeps it in the upper one.
        """
        return self._with_integral(value, "below")

    def sf(self, value: ArrayLike) -> Tensor:
        """Return the probability of a cosine above `value`, 1 - cdf: (..., *batch)."""
        return self._with_integral(value, "above")

    def icdf(self, value: ArrayLike) -> Tensor:
        """Return the cosine below which the probability is `value`: (..., *batch)."""
        given = as_float_tensor("value", value, self.concentration)
        if not bool(((given >= 0) & (given <= 1)).all()):
            raise SteradError("icdf takes probabilities: give values from 0 to 1")
        return self._with_integral(given, "quantile")

    def _with_integral(self, value: ArrayLike, method: str) -> Tensor:
        """Apply a method of CosineIntegral to values that broadcast with the batch."""
        given = as_float_tensor("value", value, self.concentration)
        shape = broadcast_shapes(given.shape, self.batch_shape)
        rows = to_double(given).expand(shape).reshape(-1, max(1, self.batch_shape.numel()))
        flat = self.flatten()
        integral = CosineIntegral(flat._log_kernel, to_double(flat.concentration), self.dimension)
        result: Tensor = getattr(integral, method)(rows)
        return result.reshape(shape).to(self.concentration)

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area: (*batch)."""
        return log_area(self.dimension) - self._expectation(self._log_kernel)

    def _entropy_of(self, gap: Tensor) -> Tensor:
        """Return the entropy from its float64 difference to that of the uniform law."""
        return (log_area(self.dimension) + gap).to(self.concentration)

    def _expectation(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        kappa = to_double(self.concentration)
        value = expectation(self._log_kernel, function, kappa, self.dimension)
        return value.to(self.concentration)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.has_differentiable_cosine):
            cosine = self.sample_cosine(shape[:-1], generator)
        if torch.is_grad_enabled() and not self.has_differentiable_cosine:
            cosine = reparametrize(self, cosine)
        pole = to_double(self.mean_direction)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=pole.device)
        return turn_to_pole(cosine, noise, pole).to(self.mean_direction)
