"""The base classes of laws on the unit sphere, with and without symmetry about a direction."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from sterad.devices import to_double
from sterad.errors import SteradError
from sterad.registry import Registry
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
from sterad.sphere.fit import Fit
from sterad.sphere.newton import maximize
from sterad.sphere.quadrature import expectation, log_area
from sterad.sphere.weighted_points import WeightedPoints
from sterad.torch_private import standard_gamma

Shape = torch.Size | list[int] | tuple[int, ...]
"""What torch accepts as the shape of samples."""


class SphereDistribution(Distribution):
    """A distribution of points on the unit sphere; subclasses implement `log_prob` and `_draw`."""

    support: constraints.Constraint = unit_sphere
    fitted_parameters: ClassVar[frozenset[str]] = frozenset({"mean_direction", "concentration"})
    """Names of the parameters that `fit` estimates; others keep the value given to it."""

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point."""
        return self.event_shape[0]

    def sample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points: (*sample_shape, *batch, d)."""
        with torch.no_grad():
            return self._draw(self._extended_shape(torch.Size(sample_shape)), generator)

    def rsample(self, sample_shape: Shape = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw points that are differentiable with respect to the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no reparametrized sampler")
        return self._draw(self._extended_shape(torch.Size(sample_shape)), generator)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        raise NotImplementedError

    @classmethod
    def fit(cls, points: ArrayLike, weights: ArrayLike | None = None, **shape: float) -> Fit[Self]:
        """Return the law of maximum likelihood for points, with standard errors.

        points: (*batch, n, d) unit rows, one law for each batch; weights: (*batch, n), ones by
        default; shape: parameters that are not fitted (df). Computed in float64, returned in the
        dtype of the points.
        """
        cls._require_shape(shape)
        return cls._fit(WeightedPoints.batched(points, weights), **shape)

    @classmethod
    def fit_batch(cls, points: ArrayLike, weights: ArrayLike, **shape: float) -> Fit[Self]:
        """Return k laws for the same points, (n, d), under k weightings, (k, n).

        The points are not copied k times; the M step of a mixture is one call.
        """
        cls._require_shape(shape)
        return cls._fit(WeightedPoints.shared(points, weights), **shape)

    @classmethod
    def _require_shape(cls, given: Mapping[str, float]) -> None:
        """Raise if an argument of a fit is no parameter of the law, or one that is fitted."""
        fixed = sorted(set(cast(Any, cls.arg_constraints)) - cls.fitted_parameters)
        for name in given:
            if name not in fixed:
                allowed = f"give only {', '.join(fixed)}" if fixed else "leave it out"
                raise SteradError(f"{cls.__name__} cannot be fitted with a given {name}: {allowed}")

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        raise SteradError(f"{cls.__name__} cannot be fitted: define _fit")

    def expand(self, batch_shape: Shape, _instance: Self | None = None) -> Self:
        """Return the same law with its parameters expanded to `batch_shape`."""
        new = copy(self)
        new._batch_shape = torch.Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            value: Tensor = getattr(self, name)
            event_shape = value.shape[value.dim() - constraint.event_dim :]
            setattr(new, name, value.expand(new._batch_shape + event_shape))
        return new


class SphericalLaw(SphereDistribution):
    """The base of laws whose density increases with the cosine with the mean direction.

    Subclasses implement `log_kernel_at`, which is normalized: the density relative to the uniform
    law has mean 1 over the sphere, increases with the cosine and is 1 at concentration 0. They also
    implement `concentration_of` and, for samples, `sample_cosine`; see `sterad.testing.check_law`.
    mean_direction: (*batch, d) unit rows; concentration: (*batch), zero for the uniform law.
    Computations are in float64; for parameters on MPS, which has no float64, they run on the CPU,
    and sampling then needs a CPU generator.
    """

    arg_constraints: dict[str, constraints.Constraint] = {  # noqa: RUF012
        "mean_direction": unit_sphere,
        "concentration": constraints.nonnegative,
    }
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
            require_concentration(concentration)
        super().__init__(shape, mean_direction.shape[-1:], validate_args=validate_args)

    @staticmethod
    def log_kernel_at(cosine: Tensor, concentration: Tensor, dimension: int) -> Tensor:
        """Return the log-density relative to the uniform law; float64 in, float64 out."""
        raise NotImplementedError

    @staticmethod
    def concentration_of(variance: float) -> float:
        """Return the concentration of a law with this `variance`."""
        raise NotImplementedError

    def sample_cosine(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        """Draw cosines with the mean direction: `shape`, float64."""
        raise NotImplementedError(f"{type(self).__name__} cannot be sampled: define sample_cosine")

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
        cosine = (to_double(value) * to_double(self.mean_direction)).sum(-1)
        density = self._log_kernel(cosine) - log_area(self.dimension)
        dtype = torch.promote_types(value.dtype, self.concentration.dtype)
        return density.to(value.device, dtype)

    def _log_kernel(self, cosine: Tensor) -> Tensor:
        return self.log_kernel_at(cosine, to_double(self.concentration), self.dimension)

    @property
    def mode(self) -> Tensor:
        """The mean direction, at which the density is largest."""
        return self.mean_direction

    @property
    def mean_resultant_length(self) -> Tensor:
        """The length of the mean vector, E[cosine]: (*batch)."""
        return self._expectation(lambda cosine: cosine).clamp(0, 1)

    @property
    def mean(self) -> Tensor:
        """The mean vector, inside the ball: (*batch, d)."""
        return self.mean_direction * self.mean_resultant_length.unsqueeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropy with respect to area: (*batch)."""
        return log_area(self.dimension) - self._expectation(self._log_kernel)

    def _expectation(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        kappa = to_double(self.concentration)
        value = expectation(self._log_kernel, function, kappa, self.dimension)
        return value.to(self.concentration)

    @classmethod
    def _fit(cls, data: WeightedPoints, **shape: float) -> Fit[Self]:
        return maximize(cls, data, **shape).as_fit(
            cls, data.count.reshape(data.batch_shape), data.points, **shape
        )

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        cosine = self.sample_cosine(shape[:-1], generator).unsqueeze(-1)
        pole = to_double(self.mean_direction)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=pole.device)
        tangent = noise - (noise * pole).sum(-1, keepdim=True) * pole
        tangent = torch.nn.functional.normalize(tangent, dim=-1)
        # The lower bound keeps the derivative of the square root finite at the poles.
        sine = ((1 - cosine) * (1 + cosine)).clamp_min(1e-30).sqrt()
        return (cosine * pole + sine * tangent).to(self.mean_direction)


def draw_symmetric_beta(like: Tensor, p: int, generator: torch.Generator | None) -> Tensor:
    """Draw beta variables with both parameters p/2, in the shape and dtype of `like`.

    They are (1 - t)/2 for the cosine t of a uniform point in p + 1 dimensions with a fixed one.
    """
    half = torch.full_like(like, p / 2)
    first, second = standard_gamma(half, generator), standard_gamma(half, generator)
    return first / (first + second)


REQUIRED = ("log_kernel_at", "concentration_of")
"""What a law must define to be used in a loss; `sample_cosine` is needed for samples only."""


def _find_problem(law: type[SphericalLaw]) -> str | None:
    """Return why a class cannot be registered as a law."""
    if not (isinstance(law, type) and issubclass(law, SphericalLaw)):
        return "is no subclass of SphericalLaw: extend it"
    inherited = [name for name in REQUIRED if getattr(law, name) is getattr(SphericalLaw, name)]
    return f"does not define {', '.join(inherited)}: define each" if inherited else None


LAWS: Registry[type[SphericalLaw]] = Registry("law", "sterad.laws", _find_problem)
